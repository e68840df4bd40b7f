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


print(json.dumps({"tables": tables, "inspect": inspect}[sys.argv[2]]()))
