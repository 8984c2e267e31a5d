"""Words of a page about its guarantee, for people without knowledge of the field. Numbers are rounded up."""

import math

_LARGE = 4.0  # above it, somebody who wavers between two answers can become more than 98 % sure of one


def number_text(value):
    """Return a float as text, a whole number without its point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def promise(submit):
    """Return the first sentence of a page."""
    what = "sends only the result" if submit is not None else "shows you the result"
    return f"Your answer stays on this device. This page mixes chance into it and {what}, the report."


def guarantee(protocol, submit):
    """Return the guarantee in plain words, a list of sentences."""
    return [
        "Somebody who finds two answers equally likely, and then learns your report, can be at most "
        f"{_percent(protocol.epsilon)} % sure of either.",
        *_shares(protocol),
        "One report says little about you. Many reports together show what people answer on the whole."
        if protocol.epsilon <= _LARGE else
        "The noise of this survey is weak: your report may say much about you. Answer only if you accept that.",
        "Whoever runs the receiving computer can see that you answered, when, and your network address."
        if submit is not None else "This page sends nothing. You copy the report, and decide what becomes of it.",
    ]


def details(protocol):
    """Return what else is good to know about the guarantee."""
    return [
        f"Every possible report can come out whatever you answer. None is more than {_ratio(protocol.epsilon)} times "
        "as likely for one answer as for another. This is called local differential privacy, with epsilon = "
        f"{number_text(protocol.epsilon)}.",
        "The chance is drawn once. If you come back on this device you get the same report. If you answer on another "
        "device, or take part in other surveys, more can be learned about you.",
        "This browser keeps the report, so that it is not drawn twice. It does not keep your answer.",
    ]


def _shares(protocol):
    """Return what several questions mean for the guarantee."""
    n_questions = protocol.n_features
    return [] if n_questions == 1 else [_SHARES[type(protocol).__name__](protocol, n_questions)]


def _split(protocol, n_questions):
    return (f"This holds for your {n_questions} answers together: each gets a share of the budget "
            f"(epsilon = {protocol.randomizer.epsilon:.3g}).")


def _sampled(protocol, n_questions):
    return f"A coin chooses one of your {n_questions} answers, whatever they are. Only that one is used."


def _joint(protocol, n_questions):
    return f"This holds for your {n_questions} answers together: the page treats them as one."


_SHARES = {"ValueProtocol": _split, "SampledValueProtocol": _sampled, "CategoryProtocol": _joint}


def _ratio(epsilon):
    """Return e^epsilon in words, rounded up."""
    ratio = math.exp(epsilon)
    return f"{math.ceil(ratio * 100) / 100:g}" if ratio < 1000 else f"{math.ceil(ratio):,}"


def _percent(epsilon):
    """Return the largest posterior probability of one of two answers, in percent, rounded up but below 100."""
    digits = next(digits for digits in range(1, 12) if math.exp(epsilon) < 10 ** (digits + 2) / 2)
    return f"{math.ceil(100 * 10**digits / (1 + math.exp(-epsilon))) / 10**digits:.{digits}f}"
