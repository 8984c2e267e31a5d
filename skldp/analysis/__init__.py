"""Questions about a collection: how many people it needs, how far forged reports pull, whether reports are honest."""
