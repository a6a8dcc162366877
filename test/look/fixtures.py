"""Jobs as `/status` and a result file tell of them, made up: one and two losses, running, failed, finished."""
import math

STEPS_OF_AN_EPOCH = 430
EVIL = '<img src=x onerror="document.body.dataset.hacked=1"></script><script>document.body.dataset.hacked=1</script>'


def loss_at(step, start, end):
    return end + (start - end) * math.exp(-step / 900) + 0.012 * math.sin(step / 37)


def rate_at(step):
    return 0.001 if step <= 2600 else 0.0001


def curve_until(step, losses):
    every = max(1, step // 400)
    return [{"step": s, "seconds": s * 0.011, "learning_rate": rate_at(s),
             "samples_per_second": 91000 + 9000 * math.sin(s / 90) - (40000 if 1500 < s < 1560 else 0),
             "loss": {name: loss_at(s, 0.69 + i, 0.35 + i / 2) for i, name in enumerate(losses)}}
            for s in range(every, step + 1, every)]


def metrics(step, i):
    if i:  # This loss is a squared error, which has no AUC.
        return {"auc": None, "logloss": loss_at(step, 1.72, 0.91), "calibration": 1.01,
                "rmse": math.sqrt(loss_at(step, 1.72, 0.91))}
    return {"auc": 0.5 + 0.31 * (1 - math.exp(-step / 1100)), "logloss": loss_at(step, 0.71, 0.38),
            "calibration": 0.98 + 0.01 * math.sin(step),
            **{name: 0.2 + i / 20 + 0.31 * (1 - math.exp(-step / 1100)) for i, name in enumerate(
                ("pr_auc", "gauc", "ndcg", "recall", "hit_rate", "mrr"))}}


def named(losses, of):
    return of(0) if len(losses) == 1 else {name: of(i) for i, name in enumerate(losses)}


def train(step, losses):
    return named(losses, lambda i: {"logloss": loss_at(step, 0.69 + i, 0.35 + i / 2)})


def history_until(step, losses):
    steps = range(STEPS_OF_AN_EPOCH, step + 1, STEPS_OF_AN_EPOCH)
    return [{"epoch": i, "step": s, "rate_scale": rate_at(s) * 1000, "learning_rate": rate_at(s),
             "train": train(s, losses), "valid": named(losses, lambda k, s=s: metrics(s, k)),
             "valid_text": "-"} for i, s in enumerate(steps, 1)]


def table(rows, on_disk=0):
    return {"rows": rows, "rows_in_memory": rows - on_disk, "rows_on_disk": on_disk, "bytes": rows * 144,
            "pushes_refused": 0, "rows_expired": 0, "rows_touched": rows * 97, "rows_fetched": on_disk * 3,
            "rows_written": on_disk}


TABLES = {"user": table(957), "item": table(4_082_113, 1_220_000)}
JOINED = [{"t": 0.02, "kind": "server_joined", "id": 1, "host": "ps-a.cluster.internal"},
          {"t": 0.03, "kind": "server_joined", "id": 2, "host": "ps-b.cluster.internal"},
          {"t": 0.2, "kind": "worker_joined", "id": 3, "host": "trainer-1.cluster.internal"},
          {"t": 0.21, "kind": "worker_joined", "id": 4, "host": "trainer-2.cluster.internal"},
          {"t": 0.22, "kind": "worker_joined", "id": 5, "host": "trainer-3.cluster.internal"}]
TRAINED = JOINED + [
    {"t": 0.9, "kind": "started"},
    {"t": 11.4, "kind": "checkpoint", "step": 1000, "folder": "runs/frappe_deepfm/checkpoints/step-000000001000"},
    {"t": 17.2, "kind": "server_lost", "id": 2}, {"t": 19.5, "kind": "recovered", "id": 2, "seconds": 2.31},
    {"t": 29.8, "kind": "rate_changed", "step": 2600, "rate_scale": 0.10000000149011612}]
ERROR = {"what": "worker 4 has not been heard of for 3.1 s", "where": "scheduler",
         "hint": "see its log; go on with: dovetail launch configs/frappe_deepfm.yaml --resume auto"}


def processes(step):
    roles = [("server", 1), ("server", 2), ("worker", 3), ("worker", 4), ("worker", 5)]
    return [{"role": role, "id": i, "pid": 41200 + i, "host": JOINED[i - 1]["host"], "heartbeat_age": 0.1 * i,
             "step": step if role == "worker" else 0, "shards": 32 if role == "server" else 0,
             "cpu_seconds": 31.4 + i, "peak_rss_bytes": 220_000_000 + i * 9_000_000,
             "bytes_sent": 221_000_000 * i, "bytes_received": 198_000_000 * i, "accelerator": None,
             "heads": 16, "tails": 16, "syncing": 0, "draining": False, "kept_bytes": 0, "copied_bytes": 0}
            for role, i in roles]


SHARDS = {"map_version": 1, "count": 32, "replicas": 1, "by_members": {"1": 32}, "short": 0, "copies": [], "copies_left": 0,
          "bytes_left": 0, "bytes_per_second": None, "seconds_left": None, "lost": []}
COPYING = dict(SHARDS, map_version=41, replicas=2, by_members={"1": 12, "2": 20}, short=12, copies_left=14,
               bytes_left=120 << 20, bytes_per_second=12.5 * (1 << 20), seconds_left=9.6,
               lost=["server 2 (pid 41202 on ps-b.cluster.internal) was killed by signal 9"],
               copies=[{"shard": 7, "from": 1, "to": 6, "bytes": 3 << 20, "rows": 12000, "rows_of_shard": 40000},
                       {"shard": 9, "from": 1, "to": 6, "bytes": 0, "rows": 0, "rows_of_shard": 0}])


def status(step, losses, **more):
    return {"job": "frappe_deepfm", "phase": "running", "seconds": 0.9 + step * 0.011,
            "epoch": min(10, step // STEPS_OF_AN_EPOCH + 1), "epochs": 10, "step": step, "steps": 4300,
            "samples": step * 1024, "losses": losses, "samples_per_second": 93_114.2,
            "train": train(step, losses), "seconds_left": (4300 - step) * 0.011, "learning_rate": rate_at(step),
            "rate_scale": rate_at(step) * 1000, "places": "41 nodes on cpu; 2 tables on servers",
            "checkpoint": "runs/frappe_deepfm/checkpoints/step-000000001000", "outcome": None, "malformed": 0,
            "processes": processes(step), "shards": SHARDS, "tables": TABLES, "history": history_until(step, losses),
            "curve": curve_until(step, losses), "events": TRAINED, **more}


def gathering():
    return status(0, ["click"], phase="gathering", epoch=0, epochs=0, steps=0, train=None, samples_per_second=None,
                  seconds_left=None, learning_rate=None, places="", checkpoint=None, tables={},
                  shards=None, processes=processes(0)[:2], events=JOINED[:2])


def result(step, losses, **more):
    roles = [{"role": "scheduler", "id": 0, "pid": 41200, "cpu_seconds": 2.2, "peak_rss_bytes": 31_000_000,
              "bytes_sent": 400_000, "bytes_received": 700_000}]
    roles += [{key: p[key] for key in roles[0]} for p in processes(step)]
    return {"job": "frappe_deepfm", "status": "completed", "error": None, "samples": step * 1024, "steps": step,
            "epochs": step // STEPS_OF_AN_EPOCH, "seconds": step * 0.011, "seconds_total": 4 + step * 0.011,
            "samples_per_second": 93_090.9, "losses": losses,
            "metrics": {"train": train(step, losses), "valid": named(losses, lambda i: metrics(step, i)),
                        "test": named(losses, lambda i: metrics(step - 50, i))},
            "best": {"epoch": 9, "valid": named(losses, lambda i: metrics(step, i))},
            "checkpoint": "runs/frappe_deepfm/checkpoints/step-000000004300", "roles": roles, "tables": TABLES,
            "checksum": {"tables": {"user": "5f0c1d22a9b3e871", "item": "c2b7704e19d05a3f"}, "dense": "77aa01c9e2f4b360"},
            "events": TRAINED + [{"t": 51.2, "kind": "early_stop", "step": 4300},
                                 {"t": 51.4, "kind": "restored", "step": 3870},
                                 {"t": 51.9, "kind": "ended", "status": "completed"}],
            "history": history_until(step, losses), "curve": curve_until(step, losses), **more}


def blown_up(job):
    """The same job with a learning rate that was too high from the 20th point on."""
    for i, point in enumerate(job["curve"]):
        if i >= 20:
            point["loss"] = {name: 359_398.0 * (1 + math.sin(i / 9) / 2) for name in point["loss"]}
    return job


def many_epochs(job):
    job["history"] = [dict(job["history"][0], epoch=i, step=i * 43) for i in range(1, 101)]
    return job


def before_there_were_curves(job):
    """A result file of an earlier version."""
    del job["curve"], job["losses"]
    for evaluation in job["history"]:
        del evaluation["learning_rate"]
    return job


FAILED = {"status": "failed", "error": ERROR}
NOTHING = {"auc": None, "logloss": None, "calibration": None}
END = [{"t": 24.2, "kind": "worker_lost", "id": 4}, {"t": 24.2, "kind": "ended", "status": ERROR["what"]}]
ONE, TWO = ["click"], ["click", "rating"]

# Jobs on the status page.
LIVE = {
    "gathering": gathering(),
    "one running": status(2137, ONE),
    "two running": status(2137, TWO),
    "copying": status(2137, ONE, shards=COPYING),
    "hostile": status(2137, TWO, job=EVIL, checkpoint=EVIL, events=[{"t": 1.0, "kind": EVIL, "why": EVIL}],
                      tables={EVIL: table(3)}, outcome={"status": "failed", "error": {"what": EVIL, "where": "", "hint": ""}}),
    "one failed": status(2137, ONE, phase="ended", seconds_left=None, outcome=FAILED, events=TRAINED + END),
    "two finished": status(4300, TWO, phase="ended", seconds_left=0, outcome={"status": "completed", "error": None}),
}
# Jobs in the report.
ENDED = {
    "one finished": dict(result(4300, ONE), best_possible={"auc": 0.8123, "logloss": 0.3521}),
    "two finished": result(4300, TWO),
    "two failed": result(1290, TWO, **FAILED, best=None, events=TRAINED[:6] + END,
                         metrics={"train": train(1290, TWO), "valid": NOTHING, "test": NOTHING}),
    "failed at once": result(0, ONE, **FAILED, samples_per_second=None, best=None, checkpoint=None, tables={}, checksum=None, events=[],
                             metrics={"train": {"logloss": None}, "valid": NOTHING, "test": NOTHING}),
    "blown up": blown_up(result(4300, ONE)),
    "many epochs": many_epochs(result(4300, ONE)),
    "old": before_there_were_curves(result(4300, TWO)),
}
