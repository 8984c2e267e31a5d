"""Client: repeated reports, exact sums of budgets, the ceiling, and the ledger file."""

import base64
import json
import os
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse

from skldp.exceptions import BudgetError, InvalidParameterError
from skldp.protocols import (
    CategoryProtocol,
    Client,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    SampledValueProtocol,
    ValueProtocol,
    _client_ledger,
)
from skldp.protocols._atomic_files import try_lock
from skldp.protocols._client_ledger import MAX_LEDGER_BYTES, Account

VALUES = ValueProtocol(epsilon=0.5, bounds=(0, 1000))
NAN = float("nan")
# protocol, a record, the same record in another form, another record
CASES = {
    "square wave": (VALUES, 171.5, [[171.5]], 500.0),
    "beyond the bounds": (VALUES, 1000, 1e300, 0),
    "missing": (VALUES, NAN, "no number", 0),
    "masked": (VALUES, NAN, np.ma.array([171.5], mask=[True]), 171.5),
    "masked row": (MomentProtocol(n_features=2), [None, 0.2, None], np.ma.array([0.1, 0.2, 0.3], mask=[1, 0, 1]),
                   [0.1, 0.2, 0.3]),
    "same point of the grid": (VALUES, 171.5, 171.5001, 175.0),
    "laplace": (ValueProtocol(mechanism="laplace", n_features=2), [1, 2], {"a": 1.0, "b": 2.0}, [2, 1]),
    "one of two": (SampledValueProtocol(bounds=(0, 1000)), [1, NAN], {"a": 1.0, "b": None}, [1, 2]),
    "gaussian": (ValueProtocol(mechanism="gaussian", delta=1e-5, n_levels=1), 1.0, np.array([1.0]), 2.0),
    "subset": (CategoryProtocol(categories=tuple("abcdefghijk")), "c", {"letter": "c"}, "d"),
    "no category": (CategoryProtocol(categories=tuple("abcdefghijk")), "?", 10**400, "d"),
    "unary": (CategoryProtocol(categories=tuple(range(9)), mechanism="oue"), 3, [[3.0]], 4),
    "response": (CategoryProtocol(categories=(0, 1, 2), mechanism="rr"), 1, [1], 2),
    "rows": (CategoryProtocol(categories=(("a", 1), ("b", 1)), n_features=2), ["a", 1], {"x": "a", "n": 1}, ["b", 1]),
    "moments": (MomentProtocol(n_features=2), [0.0, NAN, 0.5], {"y": 0.5, "u": -0.0, "v": None}, [0.0, NAN, 0.4]),
    "records": (RecordProtocol(n_features=2), [0.1, 0.2, None], {"u": 0.1, "v": 0.2, "y": "?"}, [0.2, 0.1, None]),
    "labels": (LabelMomentProtocol(n_features=1), [0.1, 1], np.array([0.1, 1.0]), [0.1, 0]),
    "no label": (LabelMomentProtocol(n_features=1), [0.1, 7], [0.1, None], [0.1, 1]),
    "labelled records": (LabelRecordProtocol(n_features=2, classes=("no", "yes")), [0.1, 0.2, "yes"],
                         ([0.1, 0.2], "yes"), [0.1, 0.2, "no"]),
}
cases = pytest.mark.parametrize("name", CASES)


def ask(client, record):
    """Report of a record; a tuple is a record and its response."""
    return client.report(*record) if isinstance(record, tuple) else client.report(record)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


@cases
@pytest.mark.parametrize("stored", [True, False])
def test_the_same_record_gets_the_same_report(name, stored, path):
    protocol, record, again, other = CASES[name]
    client = Client(protocol.to_json(), ledger=path if stored else None)
    first = ask(client, record)
    assert first.shape == (1, protocol.width) and protocol.check(first).all()
    assert first.dtype == protocol._randomize(*_split(protocol, record), 0).dtype
    for _ in range(2):
        report = ask(client, again)
        assert report.dtype == first.dtype and report.flags.writeable
        np.testing.assert_array_equal(report, first)
        report[:] = 0  # the caller's own copy
        assert client.spent() == protocol.epsilon
    if stored:
        np.testing.assert_array_equal(Client(protocol, ledger=path).report(*_split(protocol, record)), first)
    ask(client, other)
    assert client.spent() == 2 * protocol.epsilon and client.spent_delta() == 2 * protocol.delta
    assert protocol.aggregate(first).n_reports == 1


def _split(protocol, record):
    if isinstance(record, tuple):
        return record
    return (record[:-1], record[-1:]) if hasattr(protocol, "data_norm") else (record, None)


def test_one_client_repeats_its_report_and_new_clients_differ():
    client = Client(VALUES)
    assert len({int(client.report(171.5)[0, 0]) for _ in range(100)}) == 1
    assert len({int(Client(VALUES).report(171.5)[0, 0]) for _ in range(100)}) > 10


def test_reports_have_the_distribution_of_the_protocol():
    protocol = CategoryProtocol(epsilon=1.0, categories=("a", "b"), mechanism="rr")
    truths = sum(int(Client(protocol).report("b")[0, 0]) for _ in range(500))
    share = np.exp(1) / (1 + np.exp(1))
    assert abs(truths - 500 * share) < 6 * np.sqrt(500 * share * (1 - share))


def test_another_protocol_costs_its_own_epsilon(path):
    other = ValueProtocol(epsilon=0.25, bounds=(0, 999))
    first = [Client(protocol, ledger=path).report(3.0) for protocol in (VALUES, other)]
    assert Client(VALUES, ledger=path).spent() == 0.75
    again = [Client(protocol, ledger=path).report(3.0) for protocol in (VALUES, other)]
    assert again == first and Client(other, ledger=path).spent() == 0.75


@pytest.mark.parametrize("epsilon, n_reports, ceiling", [(0.1, 10, 1.0), (0.1, 3, 0.3), (0.7, 3, 2.1), (1 / 3, 3, 1.0)])
def test_sums_are_exact(epsilon, n_reports, ceiling, path):
    client = Client(ValueProtocol(epsilon=epsilon, bounds=(0, 100)), ledger=path, max_epsilon=ceiling)
    for number in range(n_reports):
        client.report(number)
    assert client.spent() == pytest.approx(ceiling, abs=1e-15) and client.spent() <= ceiling
    with pytest.raises(BudgetError):
        client.report(n_reports)


def test_a_sum_between_two_floats_is_rounded_up():
    client = Client(ValueProtocol(epsilon=1e-6, bounds=(0, 100)))
    client.report(1)
    client._store._account.spent[("another", 10.0, 0.0)] = 10**15  # 1e16 + 1e-6 is not a float
    assert client.spent() > 1e16 and float(client.spent()) == np.nextafter(1e16, np.inf)


@pytest.mark.parametrize("ceiling", [0.1, 0.4999999])
def test_a_protocol_above_the_ceiling_is_refused_at_once(path, ceiling):
    for protocol in (VALUES, VALUES.to_json(), VALUES.to_json().encode()):
        with pytest.raises(BudgetError, match="epsilon=0.5, and 0.0 of max_epsilon=0"):
            Client(protocol, ledger=path, max_epsilon=ceiling)
    assert not path.exists()
    assert issubclass(BudgetError, InvalidParameterError)


def test_above_the_ceiling_nothing_is_drawn_and_earlier_reports_are_returned(path, monkeypatch):
    client = Client(VALUES, ledger=path, max_epsilon=1.2)
    first = client.report(1)
    client.report(2)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(ValueProtocol, "_draw", None)
        with pytest.raises(BudgetError, match="1.0 of max_epsilon=1.2 is spent"):
            client.report(3)
        np.testing.assert_array_equal(client.report(1), first)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(Client(VALUES, ledger=path, max_epsilon=0.5).report(1), first)
    assert Client(VALUES, ledger=path, max_epsilon=1.5).report(3).shape == (1, 1)


def test_a_total_delta_above_the_limit_is_refused():
    with pytest.raises(BudgetError, match="delta=0.99"):
        Client(RecordProtocol(epsilon=0.1, delta=0.99), max_epsilon=1.0)
    client = Client(RecordProtocol(epsilon=0.1, delta=0.004), max_epsilon=1.0)
    client.report([0.1, 0.2])
    client.report([0.2, 0.2])
    with pytest.raises(BudgetError, match="0.008 of 0.01"):
        client.report([0.3, 0.2])
    assert client.spent_delta() == 0.008


@pytest.mark.parametrize("protocol, message", [
    (ValueProtocol(epsilon=np.inf), "no privacy at all"),
    (ValueProtocol(epsilon=np.inf).to_json(), "no privacy at all"),
    (GradientProtocol(), "GradientClient"), ("protocol.json", "not its path"), (7, "got int"), (None, "got NoneType"),
    (ValueProtocol, "got ABCMeta")])
def test_protocols_that_a_client_refuses(protocol, message, path):
    with pytest.raises(InvalidParameterError, match=message):
        Client(protocol, ledger=path)
    assert not path.exists()


@pytest.mark.parametrize("options", [{"max_epsilon": value} for value in (0, -1, NAN, np.inf, True, "2", [1])]
                         + [{"ledger": value} for value in (7, True, [], {})], ids=str)
def test_parameters_are_checked(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        Client(VALUES, **options)


@pytest.mark.parametrize("protocol, arguments", [
    (VALUES, ([171.5, 172.5],)), (VALUES, ([[171.5], [172.5]],)), (VALUES, ({"a": 171.5, "b": 172.5},)),
    (VALUES, ([],)), (VALUES, (171.5, 172.5)), (ValueProtocol(n_features=2), ([[171.5], [172.5]],)),
    (ValueProtocol(n_features=2), ([171.5] * 3,)),
    (CategoryProtocol(categories=(171.5, 172.5)), ([171.5, 172.5],)),
    (MomentProtocol(n_features=2), ([171.5, 172.5],)), (MomentProtocol(n_features=2), ({"a": 171.5, "y": 172.5},)),
    (MomentProtocol(n_features=2), ([[171.5, 171.5]] * 2, [172.5] * 2)),
    (MomentProtocol(n_features=2), ([171.5, 171.5], [172.5] * 2))])
def test_errors_are_about_shapes_and_show_no_value(protocol, arguments, path):
    client = Client(protocol, ledger=path)
    with pytest.raises(ValueError) as error:
        client.report(*arguments)
    assert "171" not in str(error.value) and "172" not in str(error.value)
    assert client.spent() == 0


def test_sparse_records_are_refused():
    with pytest.raises(TypeError, match="Sparse"):
        Client(ValueProtocol(n_features=3)).report(scipy.sparse.eye(3).tocsr()[:1])


def test_no_value_raises_or_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (NAN, np.inf, -1e300, 10**400, None, "x", 1j, b"x", object()):
            Client(VALUES).report(value)
            Client(CASES["subset"][0]).report(value)
            Client(MomentProtocol(n_features=2)).report([value, 0.1, value])
            Client(LabelMomentProtocol(n_features=1)).report([value, value])


def test_a_dict_of_lists_is_a_table():
    client = Client(ValueProtocol(bounds=(0, 8)))
    assert (client.report({"a": [3.0]}) == client.report(3.0)).all() and client.spent() == 1.0
    with pytest.raises(ValueError, match="shape|records"):
        Client(ValueProtocol(n_features=2)).report({"a": [3.0], "b": [3.0]})


@pytest.mark.parametrize("value", [[1.0, 2.0], (), np.zeros(2), np.ma.array([1.0, 2.0]), [[1.0]]])
def test_a_list_as_a_value_of_a_dict_is_a_missing_value(value):
    assert Client(ValueProtocol(n_features=2)).report({"a": value, "b": 0.5}).shape == (1, 2)
    client = Client(MomentProtocol(n_features=2))
    report = client.report({"a": value, "b": 0.5, "y": value})
    assert (client.report({"a": None, "b": 0.5, "y": None}) == report).all() and client.spent() == 1.0


@pytest.mark.parametrize("value", [87654321.53125, 23456789.0])
@pytest.mark.parametrize("protocol", [
    ValueProtocol(mechanism="laplace", bounds=(0, 2**32), n_levels=2**16),
    RecordProtocol(data_norm=2.0**32, bounds_y=(0, 2**32)),
    CategoryProtocol(categories=(87654321.53125, 23456789.0, 0.0), mechanism="rr")],
    ids=lambda kind: type(kind).__name__)
def test_the_record_is_not_in_the_file(protocol, value, path):
    client = Client(protocol, ledger=path)
    client.report([value, value] if isinstance(protocol, RecordProtocol) else value)
    text = path.read_bytes()
    number = struct.pack("<d", value)
    traces = [repr(value), str(int(value)), value.hex(), number.hex(), number[::-1].hex(), f"{int(value):x}"]
    for trace in [*traces, base64.b64encode(number).decode()[:10]]:
        assert trace.encode() not in text
    assert number not in text and number[::-1] not in text
    assert protocol.id.encode() in text  # the protocol is in the file


def test_digests_need_the_key_and_differ_by_protocol():
    array = (np.array([3]),)
    one, other = Account(), Account()
    assert len(one.key) == 32 and one.digest(VALUES, array) != other.digest(VALUES, array)
    assert one.digest(VALUES, array) != one.digest(ValueProtocol(epsilon=0.25), array)
    assert one.digest(VALUES, array) == Account(key=one.key).digest(VALUES, array)


@pytest.mark.skipif(os.name != "posix", reason="permission bits are as on POSIX systems")
def test_only_the_owner_can_read_the_file(path):
    old = os.umask(0)
    try:
        client = Client(VALUES, ledger=path)
        client.report(1)
    finally:
        os.umask(old)
    assert {name.name: stat.S_IMODE(name.stat().st_mode) for name in path.parent.iterdir()} == {
        "ledger.json": 0o600, "ledger.json.lock": 0o600}


@pytest.mark.skipif(os.name != "posix", reason="links are as on POSIX systems")
def test_a_link_to_a_ledger_is_the_same_ledger(tmp_path, path):
    (tmp_path / "link").symlink_to(path)
    Client(VALUES, ledger=tmp_path / "link").report(1)
    assert Client(VALUES, ledger=path).spent() == 0.5 and (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, "/dev/null"):
        with pytest.raises(InvalidParameterError, match="not a regular file"):
            Client(VALUES, ledger=place)


def test_a_report_is_counted_even_if_the_program_dies_before_returning_it(path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*arguments, **options):
        write(*arguments, **options)
        raise Killed

    client, write = Client(VALUES, ledger=path, max_epsilon=0.5), _client_ledger.write_atomically
    with monkeypatch.context() as patch:
        patch.setattr(_client_ledger, "write_atomically", killed)
        with pytest.raises(Killed):
            client.report(1)
    assert client.spent() == 0.5
    with pytest.raises(BudgetError):
        client.report(2)
    np.testing.assert_array_equal(client.report(1), Client(VALUES, ledger=path).report(1))
    assert client.spent() == 0.5


def test_a_ledger_that_cannot_be_written_gives_no_report(path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left")

    client = Client(VALUES, ledger=path)
    with monkeypatch.context() as patch:
        patch.setattr(_client_ledger, "write_atomically", full)
        with pytest.raises(OSError, match="no space"):
            client.report(1)
    assert client.spent() == 0


def test_the_spend_is_on_the_disk_before_the_report_is_returned(path, monkeypatch):
    synced, fsync = [], os.fsync
    client = Client(VALUES, ledger=path)
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size) or fsync(handle))
    client.report(1)
    assert len(synced) == 2 and synced[0] == path.stat().st_size  # the file, then its folder
    client.report(1)
    assert len(synced) == 2


SPENDER = textwrap.dedent("""
    import sys
    from skldp.exceptions import BudgetError
    from skldp.protocols import Client, ValueProtocol

    client = Client(ValueProtocol(epsilon=0.1, bounds=(0, 1000)), ledger=sys.argv[1], max_epsilon=2.0)
    print("ready", flush=True)
    sys.stdin.readline()
    n_reports = 0
    for number in range(15):
        try:
            client.report(15 * int(sys.argv[2]) + number)
            n_reports += 1
        except BudgetError:
            pass
    print(n_reports)
""")


def test_two_programs_do_not_spend_the_same_budget(path):
    children = [subprocess.Popen([sys.executable, "-c", SPENDER, str(path), str(number)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(2)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    counts = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sum(counts) == 20 and Client(VALUES, ledger=path).spent() == 2.0


@pytest.mark.parametrize("stored", [True, False])
def test_threads_do_not_spend_the_same_budget(stored, path):
    client = Client(ValueProtocol(epsilon=0.1), ledger=path if stored else None, max_epsilon=1.0)
    done, start = [], threading.Barrier(6)

    def work(number):
        start.wait()
        for value in np.linspace(-5, 5, 6) + number / 10:
            try:
                done.append(client.report(value))
            except BudgetError:
                pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Values beyond the bounds are the same record for several threads, which costs epsilon only once.
    assert client.spent() == 1.0 and len({report.tobytes() for report in done}) <= 10 <= len(done)


def test_a_lock_that_is_not_released(path, monkeypatch):
    client = Client(VALUES, ledger=path)
    monkeypatch.setattr(_client_ledger, "LOCK_SECONDS", 0.05)
    handle = os.open(f"{path}.lock", os.O_RDWR)
    try:
        assert try_lock(handle)
        with pytest.raises(TimeoutError, match="Another program .* Try again"):
            client.report(1)
    finally:
        os.close(handle)
    assert client.report(1).shape == (1, 1)


def test_a_disk_without_locks(path, monkeypatch):
    def no_locks(handle):
        raise OSError(37, "no locks available")

    monkeypatch.setattr(_client_ledger, "try_lock", no_locks)
    with pytest.raises(OSError, match="cannot be locked"):
        Client(VALUES, ledger=path)
    assert not path.exists()


def changed(change):
    """Return a function that changes the fields of a ledger and recomputes the checksum, which needs the key."""
    def apply(text):
        fields = json.loads(text)
        change(fields)
        fields.pop("checksum", None)
        key = bytes.fromhex(fields["key"])
        return json.dumps({**fields, "checksum": _client_ledger._checksum(key, fields)}).encode()
    return apply


def fields_with(**values):
    return changed(lambda fields: fields.update(values))


def row_with(place, **values):
    return changed(lambda fields: fields[place][0].update(values))


@pytest.mark.parametrize("change, message", [
    (lambda text: b"", "damaged"), (lambda text: text[:-1], "damaged"), (lambda text: text[:100], "damaged"),
    (lambda text: b"[]", "damaged"), (lambda text: b"\xff\xfe", "damaged"), (lambda text: b"[" * 10**5, "damaged"),
    (lambda text: text.replace(b'"epsilon": 0.5', b'"epsilon": 0.1'), "damaged"),
    (lambda text: text.replace(b'"n_reports": 1', b'"n_reports": 0'), "damaged"),
    (lambda text: VALUES.to_json().encode(), "damaged"),
    (lambda text: text + b" " * MAX_LEDGER_BYTES, "longer than 1048576 bytes"),
    (fields_with(version=2), "version 2"), (fields_with(version=True), "damaged"),
    (fields_with(version="1"), "damaged"), (fields_with(key="00"), "damaged"),
    (fields_with(spent=None), "damaged"), (fields_with(answers=3), "damaged"),
    (row_with("spent", epsilon=-5.0), "damaged"), (row_with("spent", epsilon=NAN), "damaged"),
    (row_with("spent", delta=[]), "damaged"), (row_with("spent", n_reports=1.5), "damaged"),
    (row_with("spent", n_reports=-10**400), "damaged"), (row_with("spent", n_reports=10**400), "damaged"),
    (lambda text: fields_with(spent=2 * json.loads(text)["spent"])(text), "damaged"),
    (row_with("answers", record=[]), "damaged"),
    (row_with("answers", report="AAAA"), "damaged"), (row_with("answers", report="?"), "damaged"),
    (row_with("answers", report=None), "damaged"), (row_with("answers", dtype="object"), "damaged"),
    (row_with("answers", report="/38="), "damaged"), (None, "disappeared")])
def test_with_an_unreadable_ledger_nothing_is_reported(change, message, path, monkeypatch):
    client = Client(VALUES, ledger=path)
    client.report(1)
    text = path.read_bytes()
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(text))
        assert path.read_bytes() != text
    monkeypatch.setattr(ValueProtocol, "_draw", None)
    with pytest.raises(InvalidParameterError, match=f"({message}).*Nothing was reported"):
        client.report(1)
    if change is not None:
        left = path.read_bytes()
        with pytest.raises(InvalidParameterError):
            Client(VALUES, ledger=path).report(1)
        assert path.read_bytes() == left


def test_a_flipped_byte_is_detected_or_harmless(path):
    client = Client(VALUES, ledger=path)
    first, whole = client.report(1), bytearray(path.read_bytes())
    for place in range(0, len(whole), 17):
        damaged = whole.copy()
        damaged[place] ^= 1
        path.write_bytes(damaged)
        try:
            assert client.spent() == 0.5
            np.testing.assert_array_equal(client.report(1), first)
        except InvalidParameterError as error:
            assert "Nothing was reported" in str(error)


def test_a_full_file_drops_the_oldest_answers_but_keeps_their_cost(path, monkeypatch):
    client = Client(VALUES, ledger=path)
    client.report(0)
    monkeypatch.setattr(_client_ledger, "MAX_LEDGER_BYTES", 2 * path.stat().st_size)
    reports = [client.report(value) for value in range(0, 200, 10)]
    assert client.spent() == 10.0 and path.stat().st_size <= _client_ledger.MAX_LEDGER_BYTES
    np.testing.assert_array_equal(client.report(190), reports[-1])
    assert client.spent() == 10.0
    client.report(10)
    assert client.spent() == 10.5


def test_a_report_that_is_too_long_for_the_file_costs_nothing(path, monkeypatch):
    monkeypatch.setattr(_client_ledger, "MAX_LEDGER_BYTES", 4096)
    protocol = ValueProtocol(n_features=4096, bounds=(0, 1), epsilon=20.0)
    client = Client(protocol, ledger=path)
    with pytest.raises(InvalidParameterError, match="longer than 4096 bytes"):
        client.report(np.zeros(4096))
    assert client.spent() == 0


def test_fields_of_the_ledger_file(path):
    Client(VALUES, ledger=path).report(1)
    fields = json.loads(path.read_text())
    assert list(fields) == ["format", "version", "key", "spent", "answers", "checksum"]
    assert fields["format"] == "skldp-client-ledger" and fields["version"] == 1
    assert fields["spent"] == [{"protocol": VALUES.id, "epsilon": 0.5, "delta": 0.0, "n_reports": 1}]
    assert [set(row) for row in fields["answers"]] == [{"record", "protocol", "dtype", "report"}]


def test_repr_shows_protocol_ledger_and_ceiling():
    text = repr(Client(VALUES, max_epsilon=2))
    assert text == "Client(ValueProtocol with epsilon=0.5, ledger=None, max_epsilon=2.0)"
