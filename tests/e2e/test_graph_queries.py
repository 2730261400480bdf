"""Questions to the graph of vLLM 0.10.1. What is expected was read off the source by hand, complete for each question.

Each row is (source, relation, target).
"""

import json
import shlex

import pytest

from tests.e2e.conftest import Cgrag

ENGINE = "vllm/engine/llm_engine.py::"
V1_ENGINE = "vllm/v1/engine/llm_engine.py::"
EXECUTORS = "vllm/executor/executor_base.py::"
LORA = "vllm/lora/request.py::LoRARequest"
V1_EXECUTORS = "vllm/v1/executor/"
Rows = set[tuple[str, str, str]]


def rows(relation: str, ends: dict[str, list[str]], direction: str = "out") -> Rows:
    """(source, relation, target) of one entity and its ends: {entity: [other ends]}."""
    pairs = [(one, other) for one, others in ends.items() for other in others]
    return {(one, relation, other) if direction == "out" else (other, relation, one) for one, other in pairs}


OVERRIDING = "vllm/v1/core/sched/async_scheduler.py::AsyncScheduler._update_request_with_output"
STEP, V1_STEP = f"{ENGINE}LLMEngine.step", f"{V1_ENGINE}LLMEngine.step"

QUESTIONS: dict[str, tuple[str, Rows]] = {
    "what LoRARequest is made of, and the two variables of that name": (
        "LoRARequest --direction out",
        {
            (LORA, "DEFINED_IN", "vllm/lora/request.py"),
            (LORA, "REFERENCES", "vllm/adapter_commons/request.py::AdapterRequest"),
            (LORA, "REFERENCES", f"{LORA}.local_path"),  # by @local_path.setter in the body of the class
            ("vllm/platforms/interface.py::LoRARequest", "DEFINED_IN", "vllm/platforms/interface.py"),
            ("vllm/transformers_utils/tokenizer.py::LoRARequest", "DEFINED_IN", "vllm/transformers_utils/tokenizer.py"),
        },
    ),
    # self.scheduler[…].schedule() and .get_and_reset_finished_requests_ids() are of a class that a setting names
    "what a step does, in both engines": (
        "LLMEngine.step --direction out",
        rows(
            "CALLS",
            {
                STEP: [
                    *(
                        f"{ENGINE}LLMEngine.{name}"
                        for name in (
                            "_has_remaining_steps",
                            "_process_model_outputs",
                            "_get_last_sampled_token_ids",
                            "_abort_and_cache_schedule",
                            "_advance_to_next_step",
                            "do_log_stats",
                            "do_tracing",
                            "has_unfinished_requests",
                        )
                    ),
                    f"{ENGINE}SchedulerContext.append_output",
                    "vllm/core/scheduler.py::SchedulerOutputs.is_empty",
                    "vllm/sequence.py::ExecuteModelRequest",
                    f"{EXECUTORS}ExecutorBase.execute_model",
                    f"{EXECUTORS}ExecutorBase.stop_remote_worker_execution_loop",
                ],
                V1_STEP: [
                    "vllm/v1/engine/core_client.py::EngineCoreClient.execute_dummy_batch",
                    "vllm/v1/engine/core_client.py::EngineCoreClient.get_output",
                    "vllm/v1/engine/core_client.py::EngineCoreClient.abort_requests",
                    "vllm/v1/engine/output_processor.py::OutputProcessor.process_outputs",
                    "vllm/v1/metrics/stats.py::IterationStats",
                    "vllm/v1/metrics/loggers.py::StatLoggerBase.record",
                ],
            },
        )
        | rows(
            "REFERENCES",
            {
                STEP: [
                    f"{ENGINE}logger",
                    "vllm/outputs.py::RequestOutput",
                    "vllm/outputs.py::PoolingRequestOutput",
                    "vllm/worker/model_runner_base.py::InputProcessingError",
                ],
                V1_STEP: ["vllm/outputs.py::RequestOutput", "vllm/outputs.py::PoolingRequestOutput"],
            },
        )
        | {(STEP, "DEFINED_IN", f"{ENGINE}LLMEngine"), (V1_STEP, "DEFINED_IN", f"{V1_ENGINE}LLMEngine")},
    ),
    "kinds of request queues": (
        "RequestQueue --relation INHERITS_FROM",
        rows(
            "INHERITS_FROM",
            {
                "vllm/v1/core/sched/request_queue.py::RequestQueue": [
                    "vllm/v1/core/sched/request_queue.py::FCFSRequestQueue",
                    "vllm/v1/core/sched/request_queue.py::PriorityRequestQueue",
                ]
            },
            "in",
        ),
    ),
    "executors, and executors of these, under their aliases": (
        f"{EXECUTORS}ExecutorBase --relation INHERITS_FROM --direction in --hops 2",
        rows(
            "INHERITS_FROM",
            {
                f"{EXECUTORS}ExecutorBase": [
                    f"{V1_EXECUTORS}abstract.py::Executor",
                    f"{EXECUTORS}DistributedExecutorBase",
                    "vllm/executor/uniproc_executor.py::UniProcExecutor",
                ],
                f"{V1_EXECUTORS}abstract.py::Executor": [
                    f"{V1_EXECUTORS}abstract.py::UniProcExecutor",
                    f"{V1_EXECUTORS}abstract.py::ExecutorWithExternalLauncher",
                    f"{V1_EXECUTORS}ray_distributed_executor.py::RayDistributedExecutor",
                    f"{V1_EXECUTORS}multiproc_executor.py::MultiprocExecutor",
                ],
                f"{EXECUTORS}DistributedExecutorBase": [
                    "vllm/executor/ray_distributed_executor.py::RayDistributedExecutor",
                    "vllm/executor/mp_distributed_executor.py::MultiprocessingDistributedExecutor",
                ],
                "vllm/executor/uniproc_executor.py::UniProcExecutor": [
                    f"{V1_EXECUTORS}abstract.py::UniProcExecutor",
                    "vllm/executor/uniproc_executor.py::ExecutorWithExternalLauncher",
                    "tests/engine/test_executor.py::CustomUniExecutor",
                ],
            },
            "in",
        ),
    ),
    "connectors of the KV cache": (
        "KVConnectorBase_V1 --relation INHERITS_FROM --direction in",
        rows(
            "INHERITS_FROM",
            {
                "vllm/distributed/kv_transfer/kv_connector/v1/base.py::KVConnectorBase_V1": [
                    f"vllm/distributed/kv_transfer/kv_connector/v1/{name}"
                    for name in (
                        "multi_connector.py::MultiConnector",
                        "nixl_connector.py::NixlConnector",
                        "shared_storage_connector.py::SharedStorageConnector",
                        "lmcache_connector.py::LMCacheConnectorV1",
                        "p2p/p2p_nccl_connector.py::P2pNcclConnector",
                    )
                ]
            },
            "in",
        ),
    ),
    "who calls weak_bind": (
        "weak_bind --relation CALLS --direction in",
        rows(
            "CALLS",
            {
                "vllm/utils/__init__.py::weak_bind": [
                    f"{ENGINE}LLMEngine.__init__",
                    "vllm/engine/async_llm_engine.py::AsyncLLMEngine.__init__",
                ]
            },
            "in",
        ),
    ),
    "who splits the inputs of encoder and decoder": (
        "split_enc_dec_inputs --relation CALLS --direction in",
        rows(
            "CALLS",
            {
                "vllm/inputs/parse.py::split_enc_dec_inputs": [
                    f"{ENGINE}LLMEngine._add_processed_request",
                    f"{ENGINE}LLMEngine._validate_model_inputs",
                    "vllm/v1/engine/processor.py::Processor.process_inputs",
                    "vllm/v1/engine/processor.py::Processor._validate_model_inputs",
                ]
            },
            "in",
        ),
    ),
    "what decides on usage statistics": (
        "is_usage_stats_enabled --direction out",
        rows(
            "REFERENCES",
            {
                "vllm/usage/usage_lib.py::is_usage_stats_enabled": [
                    "vllm/envs.py::VLLM_DO_NOT_TRACK",
                    "vllm/envs.py::VLLM_NO_USAGE_STATS",
                    "vllm/usage/usage_lib.py::_USAGE_STATS_ENABLED",
                    "vllm/usage/usage_lib.py::_USAGE_STATS_DO_NOT_TRACK_PATH",
                ]
            },
        )
        | {("vllm/usage/usage_lib.py::is_usage_stats_enabled", "DEFINED_IN", "vllm/usage/usage_lib.py")},
    ),
    "what the page of offline inference links to": (
        "docs/serving/offline_inference.md::'Offline Inference' --relation REFERENCES --direction out",
        rows(
            "REFERENCES",
            {
                "docs/serving/offline_inference.md::Offline Inference": [
                    "vllm/entrypoints/llm.py::LLM",
                    "docs/models/generative_models.md",
                    "docs/models/pooling_models.md",
                    "docs/api/README.md::Summary > Offline Inference",
                ]
            },
        ),
    ),
    "what the file of LoRARequest imports": (
        "vllm/lora/request.py --relation IMPORTS --direction out",
        rows(
            "IMPORTS",
            {
                "vllm/lora/request.py": [
                    "vllm/adapter_commons/request.py",
                    "vllm/adapter_commons/request.py::AdapterRequest",
                ]
            },
        ),
    ),
    "a method that goes on to the one it overrides": (
        "AsyncScheduler._update_request_with_output --direction out",
        rows(
            "CALLS",
            {
                OVERRIDING: [
                    "vllm/v1/core/sched/scheduler.py::Scheduler._update_request_with_output",
                    "vllm/v1/core/kv_cache_manager.py::KVCacheManager.cache_blocks",
                ]
            },
        )
        | rows("REFERENCES", {OVERRIDING: ["vllm/v1/request.py::Request", "vllm/v1/request.py::RequestStatus"]})
        | {(OVERRIDING, "DEFINED_IN", "vllm/v1/core/sched/async_scheduler.py::AsyncScheduler")},
    ),
}


def found(vllm: Cgrag, words: str) -> Rows:
    answer = json.loads(vllm("graph", *shlex.split(words), "--json").stdout)
    return {(row["source"], row["relation"], row["target"]) for row in answer["edges"]}


@pytest.mark.parametrize(("words", "expected"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_has_exactly_the_rows_of_the_source(vllm: Cgrag, words: str, expected: Rows) -> None:
    assert found(vllm, words) == expected


CALLERS = {
    "vllm/benchmarks/datasets.py::BenchmarkDataset.get_random_lora_request": [173],
    "vllm/entrypoints/llm.py::LLM._resolve_single_prompt_mm_lora": [571],
    "vllm/entrypoints/openai/serving_models.py::OpenAIServingModels.load_lora_adapter": [139],
    "vllm/plugins/lora_resolvers/filesystem_resolver.py::FilesystemResolver.resolve_lora": [28],
    "vllm/v1/worker/lora_model_runner_mixin.py::LoRAModelRunnerMixin.maybe_select_dummy_loras": [140],
    "vllm/v1/worker/lora_model_runner_mixin.py::LoRAModelRunnerMixin.maybe_setup_dummy_loras": [99],
    "vllm/worker/model_runner.py::GPUModelRunnerBase._add_dummy_loras": [1214],
    "benchmarks/benchmark_dataset.py::BenchmarkDataset.get_random_lora_request": [145],
    "examples/offline_inference/audio_language.py::run_granite_speech": [145],
    "examples/offline_inference/audio_language.py::run_phi4_multimodal": [239],
    "examples/offline_inference/audio_language.py::run_phi4mm": [208],
    "examples/offline_inference/lora_with_quantization_inference.py::create_test_prompts": [38, 45, 52],
    "examples/offline_inference/multilora_inference.py::create_test_prompts": [53, 64],
    "examples/offline_inference/vision_language.py::run_phi4_multimodal": [1137],
    "examples/offline_inference/vision_language.py::run_phi4mm": [1102],
    "examples/offline_inference/vision_language_multi_image.py::load_phi4_multimodal": [801],
    "examples/offline_inference/vision_language_multi_image.py::load_phi4mm": [767],
    "examples/others/tensorize_vllm_model.py::deserialize": [270],
}
"""Every place outside the tests that makes a LoRARequest: {function: lines}."""


def test_everyone_who_makes_a_lora_request_with_file_and_lines(vllm: Cgrag) -> None:
    answer = json.loads(vllm("graph", "LoRARequest", "--json").stdout)
    assert [(row["id"], row["type"], row["start_line"]) for row in answer["matches"]] == [
        (LORA, "Class", 12),
        ("vllm/platforms/interface.py::LoRARequest", "Variable", 28),
        ("vllm/transformers_utils/tokenizer.py::LoRARequest", "Variable", 31),
    ]
    calls = [row for row in answer["edges"] if row["relation"] == "CALLS" and not row["source"].startswith("tests/")]
    assert {row["source"]: [place["start_line"] for place in row["evidence"]] for row in calls} == CALLERS
    assert {row["target"] for row in calls} == {LORA}
    assert all(place["path"] == row["source"].partition("::")[0] for row in calls for place in row["evidence"])


def test_the_way_from_the_async_engine_to_a_helper(vllm: Cgrag) -> None:
    words = "AsyncLLMEngine.__init__ --to weak_bind --relation CALLS --direction out"
    assert found(vllm, words) == {
        ("vllm/engine/async_llm_engine.py::AsyncLLMEngine.__init__", "CALLS", "vllm/utils/__init__.py::weak_bind")
    }
