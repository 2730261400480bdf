"""The plan of partitions, by its properties."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.corpus.plan import MAX_KEYS, directory_of_key, key_of_directory, plan_partitions

PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda part: part not in (".", "..")
) | st.sampled_from(["a", "b", "c", "...", "x,y", "a#1-of-2", "%2C", "über", ". .", "a..."])
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
SIZES = st.dictionaries(PATHS, st.integers(0, 5000), max_size=40)
TARGETS = st.sampled_from([0, 1, 100, 3000, 10**6])
LIMITS = st.sampled_from([1, 2, 5, MAX_KEYS])
quick = settings(max_examples=60)


def directory(path):
    return path.rpartition("/")[0]


@quick
@given(st.lists(PARTS, max_size=5).map("/".join))
@example("a...b")
@example("....")
@example("a....b/...../c,d")
@example("a#1-of-2")
@example("%2E%2E%2E")
def test_keys_are_safe_and_reversible(path):
    key = key_of_directory(path)
    assert directory_of_key(key) == path
    assert key.isascii()
    assert key.isprintable()
    assert not {",", "#", " "} & set(key)
    assert "..." not in key


@quick
@given(SIZES, TARGETS, LIMITS)
def test_each_file_is_in_exactly_one_partition_at_or_above_its_directory(sizes, target, limit):
    plan = plan_partitions(sizes, {}, target_bytes=target, max_keys=limit)
    assert plan.keys() == sizes.keys()
    assert len(set(plan.values())) <= limit
    for path, key in plan.items():
        above = directory_of_key(key)
        assert above == "" or directory(path) == above or directory(path).startswith(f"{above}/")
        assert key.isascii()
        assert "," not in key
        assert "..." not in key


@quick
@given(SIZES, TARGETS, LIMITS)
def test_the_order_of_files_does_not_matter(sizes, target, limit):
    turned = dict(reversed(sizes.items()))
    assert plan_partitions(sizes, {}, target_bytes=target, max_keys=limit) == plan_partitions(
        turned, {}, target_bytes=target, max_keys=limit
    )


@quick
@given(SIZES, st.data(), TARGETS, LIMITS)
def test_files_that_stay_keep_their_key_whatever_happens_to_others(sizes, data, target, limit):
    before = plan_partitions(sizes, {}, target_bytes=target, max_keys=limit)
    stay = {path: size for path, size in sizes.items() if data.draw(st.booleans())}
    changed = {path: data.draw(st.integers(0, 50_000)) for path in stay}
    after = plan_partitions(changed | data.draw(SIZES), before, target_bytes=target, max_keys=limit)
    assert {path: after[path] for path in stay if path in before} == {path: before[path] for path in stay}
    assert len(set(after.values())) <= limit


@settings(max_examples=30)
@given(SIZES, st.data(), TARGETS)
def test_increments_never_pass_the_limit(sizes, data, target):
    plan = {}
    for _ in range(4):
        sizes = sizes | data.draw(SIZES)
        plan = plan_partitions(sizes, plan, target_bytes=target, max_keys=5)
        assert len(set(plan.values())) <= 5
        assert plan.keys() == sizes.keys()


@quick
@given(SIZES)
def test_target_zero_makes_every_directory_its_own_partition(sizes):
    plan = plan_partitions(sizes, {}, target_bytes=0)
    assert {path: directory_of_key(key) for path, key in plan.items()} == {path: directory(path) for path in sizes}
    assert not any("#" in key for key in plan.values())


@quick
@given(SIZES, TARGETS)
def test_planning_again_changes_nothing(sizes, target):
    plan = plan_partitions(sizes, {}, target_bytes=target)
    assert plan_partitions(sizes, plan, target_bytes=target) == plan


def test_a_large_corpus_is_split_into_partitions_near_the_target():
    sizes = {f"d{number % 17}/s{number % 5}/f{number}.py": 1000 for number in range(2000)}
    plan = plan_partitions(sizes, {}, target_bytes=60_000)
    counts = [sum(1 for key in plan.values() if key == wanted) for wanted in set(plan.values())]
    assert max(counts) <= 130
    assert min(counts) >= 14


def test_a_large_flat_directory_becomes_buckets_of_like_size():
    sizes = {f"flat/f{number}.py": 1000 for number in range(1000)}
    plan = plan_partitions(sizes, {}, target_bytes=100_000)
    assert set(plan.values()) == {f"flat#{number}-of-10" for number in range(1, 11)}
    counts = [sum(1 for key in plan.values() if key == wanted) for wanted in set(plan.values())]
    assert min(counts) > 60
    assert max(counts) < 150
    again = plan_partitions(sizes | {"flat/new.py": 10}, plan, target_bytes=100_000)
    assert again["flat/new.py"] in set(plan.values())


def test_small_directories_fold_into_their_parent():
    sizes = {f"d{number}/f.py": 10 for number in range(100)}
    assert set(plan_partitions(sizes, {}, target_bytes=100_000).values()) == {"."}


def test_thousands_of_directories_make_at_most_300_partitions():
    sizes = {f"d{number % 70}/e{number}/f.py": 90_000 for number in range(5000)}
    assert len(set(plan_partitions(sizes, {}, target_bytes=1000).values())) <= MAX_KEYS
    assert len(set(plan_partitions(sizes, {}, target_bytes=0).values())) <= MAX_KEYS


def test_a_new_large_directory_is_a_partition_of_its_own():
    sizes = {f"a/f{number}.py": 1000 for number in range(100)}
    before = plan_partitions(sizes, {}, target_bytes=50_000)
    sizes |= {f"b/f{number}.py": 1000 for number in range(60)}
    after = plan_partitions(sizes, before, target_bytes=50_000)
    assert {after[path] for path in sizes if path.startswith("b/")} == {"b"}


def test_a_new_file_at_the_root_makes_no_key_too_many():
    """As many directories as there may be keys, each its own partition, and then a file above them all."""
    sizes = {f"d{number}/f.py": 10 for number in range(MAX_KEYS)}
    plan = plan_partitions(sizes, {}, target_bytes=0)
    plan = plan_partitions(sizes | {"setup.py": 10}, plan, target_bytes=0)
    assert len(set(plan.values())) <= MAX_KEYS


def test_an_empty_corpus_has_no_partition():
    assert plan_partitions({}, {}, target_bytes=100) == {}
