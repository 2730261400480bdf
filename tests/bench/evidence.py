"""Measure the rules anew on the annotated docs, and store it as the evidence that comes with the product.

    CGRAG_HOME=data python -m tests.bench.evidence --split test

The home holds pypi:vllm==0.10.1 in chunks of the default settings, its graph built. No model is asked.
"""

import argparse

from pipelines.evaluate.extraction_report import evaluate_extraction
from pipelines.evaluate.extraction_table import DOCS, as_markdown, cells
from pipelines.graph.admission import EVIDENCE, judge, write_evidence
from pipelines.settings import load_settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=("dev", "test", "all"), default="test")
    split = parser.parse_args().split
    found = evaluate_extraction(load_settings(), split=split, ask=False)
    for origin in ("rule", "cooccurrence"):
        write_evidence(EVIDENCE / f"{origin}.json", found.evidence[origin])
        print(f"{origin}: {judge(origin, origin, found.evidence[origin]).why}")
        for label, share in found.evidence[origin].labels.items():
            print(f"  {label}: {share.text}")
    print(as_markdown([cells(scores, DOCS) for scores in found.docs], DOCS))


if __name__ == "__main__":
    main()
