"""Sources fit the tokens that there are, and say exactly which lines they hold."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.answer.sources import BYTES_PER_TOKEN, fitted
from pipelines.retrieve.search import Part, Result

texts = st.lists(st.text(st.sampled_from("abcé中 \n"), min_size=1, max_size=900), max_size=5)


def result(n, text):
    last = 9 + len(text.splitlines())
    return Result(
        n, f"id{n}", f"docs/{n}.md", 100, 100 + len(text), 10, last, 1.0, "lexical", "", Part("p", 10, 12), text
    )


@given(texts, st.integers(1, 700))
def test_sources_are_beginnings_of_the_first_results_within_the_tokens(found, tokens):
    results = [result(n, text) for n, text in enumerate(found, 1)]
    sources = fitted(results, tokens)
    assert [source.n for source in sources] == list(range(1, len(sources) + 1))
    assert sum(len(source.text.encode()) for source in sources) <= tokens * BYTES_PER_TOKEN
    for source, whole in zip(sources, results, strict=False):
        assert whole.text.startswith(source.text)
        assert source.end - source.start == len(source.text)
        assert source.start_line == whole.start_line
        assert source.end_line == 10 + max(len(source.text.splitlines()) - 1, 0) or source.text == whole.text
    cut = [source for source, whole in zip(sources, results, strict=False) if source.text != whole.text]
    assert cut in ([], sources[-1:])


def test_all_that_fits_is_shown_whole():
    results = [result(n, f"line\n{n}\n" * 50) for n in (1, 2)]
    assert [source.text for source in fitted(results, 1000)] == [found.text for found in results]


def test_a_long_source_is_cut_at_a_line():
    (source,) = fitted([result(1, "0123456789\n" * 300)], 200)
    assert source.text.endswith("9\n")
    assert 400 < len(source.text) <= 600
    assert source.end_line == 9 + source.text.count("\n")
