"""Reads what Offsite exported with the readers of others, and prints what they found as JSON."""

import json
import sys

folder = sys.argv[1]


def tables():
    import duckdb
    import pandas

    found = {}
    for form in ("csv", "parquet"):
        file = f"{folder}/trials.{form}"
        frame = getattr(pandas, f"read_{form}")(file)
        tokens, cost, passed = duckdb.sql(
            f"SELECT sum(total_tokens), sum(cost_usd), avg(CASE WHEN passed THEN 1 WHEN NOT passed THEN 0 END) FROM '{file}'"
        ).fetchall()[0]
        found[form] = {
            "rows": len(frame),
            "pandas": [int(frame.total_tokens.sum()), float(frame.cost_usd.sum())],
            "duckdb": [int(tokens), cost, passed],
            "started": str(pandas.to_datetime(frame.started_at).min()),
        }
    return found


def inspect():
    from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries

    found = []
    for info in sorted(list_eval_logs(f"{folder}/logs"), key=lambda log: log.name):
        log = read_eval_log(info)
        found.append(
            {
                "status": log.status,
                "model": log.eval.model,
                "accuracy": log.results.scores[0].metrics["accuracy"].value,
                "summaries": len(read_eval_log_sample_summaries(info)),
                "reductions": [one.samples[0].value for one in log.reductions],
                "samples": [
                    {
                        "id": sample.id,
                        "epoch": sample.epoch,
                        "verdict": sample.scores and sample.scores["verdict"].value,
                        "error": sample.error and sample.error.message,
                        "tokens": sum(usage.total_tokens for usage in sample.model_usage.values()),
                        "seconds": sample.total_time,
                        "messages": [message.role for message in sample.messages],
                        "events": [event.event for event in sample.events],
                    }
                    for sample in log.samples
                ],
            }
        )
    return found


def harbor():
    from pathlib import Path

    from harbor.models.trajectories import Trajectory
    from harbor.viewer.scanner import JobScanner

    # The scanner is what `harbor view` lists a folder of jobs with.
    scanner = JobScanner(Path(f"{folder}/jobs"))
    (job,) = scanner.list_jobs()
    config, result = scanner.get_job_config(job), scanner.get_job_result(job)
    trials = []
    for name in scanner.list_trials(job):
        trial = scanner.get_trial_result(job, name)
        text = Path(f"{folder}/jobs/{job}/{name}/agent/trajectory.json").read_text()
        trajectory = Trajectory.model_validate_json(text)
        trials.append(
            {
                "name": name,
                "agent": scanner.get_trial_config(job, name).agent.name,
                "rewards": trial.verifier_result and trial.verifier_result.rewards,
                "valid": trial.reward_valid,
                "error": trial.exception_info and trial.exception_info.exception_type,
                "totals": trial.compute_token_cost_totals(),
                "steps": [[step.source, bool(step.tool_calls)] for step in trajectory.steps],
                "prompt_tokens": trajectory.final_metrics.total_prompt_tokens,
            }
        )
    return {"agents": len(config.agents), "total": result.n_total_trials, "trials": trials}


def made():
    """Makes a log with inspect_ai itself, with a model that answers without a server."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    samples = [Sample(input="1+1?", target="2"), Sample(input="2+2?", target="5")]

    def answer(text):
        output = ModelOutput.from_content("mockllm/model", text)
        # Otherwise it would fetch a tokenizer.
        output.usage = ModelUsage(input_tokens=7, output_tokens=1, total_tokens=8)
        return output

    model = get_model("mockllm/model", custom_outputs=[answer(text) for text in ("2", "4", "2", "4")])
    task = Task(name="sums", dataset=samples, scorer=match())
    (log,) = eval(task, model=model, epochs=2, max_samples=1, log_dir=f"{folder}/made", display="none")
    return [
        {
            "case": str(sample.id),
            "ordinal": sample.epoch - 1,
            "verdict": "passed" if sample.scores["match"].value == "C" else "failed",
            "tokens": sum(usage.total_tokens for usage in sample.model_usage.values()),
        }
        for sample in log.samples
    ]


wanted = {"tables": tables, "inspect": inspect, "harbor": harbor, "made": made}
print(json.dumps(wanted[sys.argv[2]]()))
