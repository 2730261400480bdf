"""Merging a ledger's rows: by properties, over every order and division of them."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.ledger import Entry, merge
from pipelines.extract.segments import INDEX
from pipelines.tables import LEDGER
from tests.extraction import ledger_row as row

statuses = st.sampled_from(["ok", "length", "http 500"])
some_rows = st.lists(
    st.builds(row, st.integers(0, 3), statuses, st.sampled_from("abc"), st.sampled_from([1.0, 2.0, 3.0])), max_size=12
)


@settings(max_examples=50)
@given(some_rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_segments_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert merge(pa.Table.from_pylist(rows, LEDGER)) == merge(pa.Table.from_pylist(shuffled, LEDGER))


@settings(max_examples=50)
@given(some_rows)
def test_the_winner_is_the_ok_row_with_the_lowest_hash_else_the_latest_failure(rows):
    for found in merge(pa.Table.from_pylist(rows, LEDGER)).to_pylist():
        same = [each for each in rows if each["key"] == found["key"]]
        ok = [each["result_hash"] for each in same if each["status"] == "ok"]
        if ok:
            assert (found["status"], found["result_hash"]) == ("ok", min(ok))
        else:
            assert found["answered_at"] == max(each["answered_at"] for each in same)


@settings(max_examples=50)
@given(some_rows)
def test_merging_twice_in_parts_is_merging_once(rows):
    half = len(rows) // 2
    parts = [merge(pa.Table.from_pylist(part, LEDGER)) for part in (rows[:half], rows[half:])]
    assert merge(pa.concat_tables(parts)) == merge(pa.Table.from_pylist(rows, LEDGER))


@settings(max_examples=50)
@given(some_rows)
def test_the_index_chooses_as_the_query_does(rows):
    best = {}
    for each in rows:
        entry = Entry(each["status"], each["result_hash"], each["answered_at"], "s")
        if each["key"] not in best or entry.rank < best[each["key"]].rank:
            best[each["key"]] = entry
    merged = merge(pa.Table.from_pylist(rows, LEDGER)).select(INDEX).to_pylist()
    assert {each["key"]: (each["status"] == "ok", each["result_hash"]) for each in merged} == {
        key: (entry.status == "ok", entry.result_hash) for key, entry in best.items()
    }
