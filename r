{
  "job": "",
  "status": "failed",
  "error": {
    "what": "--set: a value is missing before --result",
    "where": "",
    "hint": ""
  },
  "samples": 0,
  "steps": 0,
  "epochs": 0,
  "seconds": 0.0,
  "seconds_total": 0.0,
  "samples_per_second": null,
  "metrics": {
    "train": {
      "logloss": null
    },
    "valid": {
      "auc": null,
      "logloss": null,
      "calibration": null
    },
    "test": {
      "auc": null,
      "logloss": null,
      "calibration": null
    }
  },
  "best": null,
  "plan": null,
  "checkpoint": null,
  "roles": [],
  "tables": {},
  "checksum": {
    "tables": {},
    "dense": null
  },
  "events": [],
  "history": [],
  "curve": []
}
