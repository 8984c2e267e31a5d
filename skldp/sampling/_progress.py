"""A progress bar for a whole fit."""

from typing import Any


class Progress:
    """A tqdm progress bar on standard error, or none.

    Parameters
    ----------
    shown : bool
        Whether there is a bar.
    total : int
        Largest number of steps per walker.
    """

    def __init__(self, shown, total):
        self.shown = shown
        self._bar: Any = _open_bar(total) if shown else None
        self._notes = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.shown:
            self._bar.close()

    def advance(self, n_steps, acceptance):
        """Show steps taken by every walker."""
        if self.shown:
            self._note(acceptance=f"{acceptance:.2f}")
            self._bar.update(n_steps)

    def check(self, rhat):
        """Show the worst R-hat of the draws so far."""
        if self.shown:
            self._note(rhat=f"{rhat:.3f}")

    def finish(self):
        """Fill the bar after the last step, which may be earlier than the largest number."""
        if self.shown:
            self._bar.total = self._bar.n
            self._bar.refresh()

    def _note(self, **notes):
        self._notes.update(notes)
        self._bar.set_postfix(self._notes, refresh=False)


def _open_bar(total):
    from tqdm import tqdm

    return tqdm(total=total, desc="sampling", unit="step", dynamic_ncols=True)
