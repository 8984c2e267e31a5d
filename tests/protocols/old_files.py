"""Files of an older version, with "auto" in descriptions and ids of 64 bits. They must stay readable."""

# Descriptions, by mechanism.
PROTOCOLS = {
    "square wave": (
        '{"bounds": [0.0, 10.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}'
    ),
    "square wave, split": (
        '{"bounds": [-5.0, 5.0], "delta": 0.0, "epsilon": 1.4, "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "square_wave", "n_features": 2, "n_levels": 8, "version": 1, "window": "auto"}'
    ),
    "square wave, chosen window": (
        '{"bounds": [-5.0, 5.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": 0.25}'
    ),
    "square wave, no noise": (
        '{"bounds": [-5.0, 5.0], "delta": 0.0, "epsilon": "inf", "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}'
    ),
    "laplace": (
        '{"bounds": [-5.0, 5.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "laplace", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}'
    ),
    "gaussian": (
        '{"bounds": [-5.0, 5.0], "delta": 1e-05, "epsilon": 20.0, "format": "skldp-protocol", "kind": "ValueProtocol", '
        '"mechanism": "gaussian", "n_features": 1, "n_levels": 65536, "version": 1, "window": "auto"}'
    ),
    "subset": (
        '{"categories": ["a", "b", "c", "d", "e", "f"], "delta": 0.0, "epsilon": 0.5, "format": "skldp-protocol", '
        '"kind": "CategoryProtocol", "mechanism": "subset", "n_features": 1, "version": 1}'
    ),
    "subset, no noise": (
        '{"categories": ["a", "b", "c", "d", "e", "f"], "delta": 0.0, "epsilon": "inf", "format": "skldp-protocol", '
        '"kind": "CategoryProtocol", "mechanism": "subset", "n_features": 1, "version": 1}'
    ),
    "unary": (
        '{"categories": [0, 1, 2, 3], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": '
        '"CategoryProtocol", "mechanism": "oue", "n_features": 1, "version": 1}'
    ),
    "response": (
        '{"categories": [[0, "a"], [1, "b"], [1, "c"]], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", '
        '"kind": "CategoryProtocol", "mechanism": "rr", "n_features": 2, "version": 1}'
    ),
    "moments": (
        '{"bounds_y": [-1.0, 1.0], "data_norm": 1.0, "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", '
        '"intercept_weight": 0.7071067811865476, "kind": "MomentProtocol", "mechanism": "sphere", "n_features": 2, '
        '"version": 1, "y_weight": 0.7071067811865476}'
    ),
    "noisy moments": (
        '{"bounds_y": [-1.0, 1.0], "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": "skldp-protocol", '
        '"intercept_weight": 0.70703125, "kind": "MomentProtocol", "mechanism": "gaussian", "n_features": 2, "version":'
        ' 1, "y_weight": 0.70703125}'
    ),
    "records": (
        '{"bounds_y": [-1.0, 1.0], "centred": true, "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": '
        '"skldp-protocol", "kind": "RecordProtocol", "n_features": 2, "version": 1, "y_weight": 0.7071067811865476}'
    ),
    "label moments": (
        '{"classes": [0, 1], "data_norm": 1.0, "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", '
        '"intercept_weight": 0.7071067811865476, "kind": "LabelMomentProtocol", "mechanism": "sphere", "n_features": 2,'
        ' "version": 1, "y_weight": 0.7071067811865476}'
    ),
    "label records": (
        '{"budget_split": 0.5, "classes": [0, 1], "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": '
        '"skldp-protocol", "kind": "LabelRecordProtocol", "n_features": 2, "version": 1}'
    ),
    "gradients": (
        '{"bounds_y": null, "classes": [-1, 1], "clip_norm": 1.0, "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, '
        '"fit_intercept": true, "format": "skldp-protocol", "kind": "GradientProtocol", "loss": "logistic", '
        '"mechanism": "gaussian", "n_features": 2, "version": 1}'
    ),
}

# Old ids of these protocols.
IDS = {
    "square wave": "d4652854f9ee3f8d",
    "square wave, split": "0dbab1d55f594037",
    "square wave, chosen window": "27eb8d52840706f7",
    "square wave, no noise": "2e6f9de6e42309ac",
    "laplace": "5356f6bd322e15f7",
    "gaussian": "f33a51dd7c9e39c9",
    "subset": "9d51c8fb1e225899",
    "subset, no noise": "ccc6d2db604249ff",
    "unary": "ae5996814a325b29",
    "response": "b9d3bfed78f893f5",
    "moments": "90ea972b9651633b",
    "noisy moments": "b4e202d6263c14db",
    "records": "64b49c8790557a68",
    "label moments": "c7e484d324123804",
    "label records": "91788b0855735d24",
    "gradients": "4b245681488a81ef",
}

# Aggregates as JSON, at least one for each kind of tally.
AGGREGATES = {
    "square wave": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "d4652854f9ee3f8d", "protocol": {"bounds": '
        '[0.0, 10.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", "mechanism": '
        '"square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}, "tally": {"kind": "sums", '
        '"n_reports": 2, "sums": {"data": "AAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "dtype": "int64", "shape": [1, 11]}}}, {"id": '
        '"43501028987469b8", "protocol": {"bounds": [0.0, 10.0], "delta": 0.0, "epsilon": 0.5, "format": '
        '"skldp-protocol", "kind": "ValueProtocol", "mechanism": "square_wave", "n_features": 1, "n_levels": 8, '
        '"version": 1, "window": "auto"}, "tally": {"kind": "sums", "n_reports": 2, "sums": {"data": "AAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", '
        '"dtype": "int64", "shape": [1, 11]}}}], "version": 1}'
    ),
    "square wave, split": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "0dbab1d55f594037", "protocol": {"bounds": '
        '[-5.0, 5.0], "delta": 0.0, "epsilon": 1.4, "format": "skldp-protocol", "kind": "ValueProtocol", "mechanism": '
        '"square_wave", "n_features": 2, "n_levels": 8, "version": 1, "window": "auto"}, "tally": {"kind": "sums", '
        '"n_reports": 2, "sums": {"data": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "dtype": "int64", "shape": [2, 11]}}}], "version": 1}'
    ),
    "square wave, chosen window": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "27eb8d52840706f7", "protocol": {"bounds": '
        '[-5.0, 5.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", "mechanism": '
        '"square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": 0.25}, "tally": {"kind": "sums", '
        '"n_reports": 2, "sums": {"data": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "dtype": "int64", "shape": [1, 13]}}}], '
        '"version": 1}'
    ),
    "square wave, no noise": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "2e6f9de6e42309ac", "protocol": {"bounds": '
        '[-5.0, 5.0], "delta": 0.0, "epsilon": "inf", "format": "skldp-protocol", "kind": "ValueProtocol", "mechanism":'
        ' "square_wave", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}, "tally": {"kind": "sums", '
        '"n_reports": 2, "sums": {"data": '
        '"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "dtype": '
        '"int64", "shape": [1, 9]}}}], "version": 1}'
    ),
    "laplace": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "5356f6bd322e15f7", "protocol": {"bounds": '
        '[-5.0, 5.0], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "ValueProtocol", "mechanism": '
        '"laplace", "n_features": 1, "n_levels": 8, "version": 1, "window": "auto"}, "tally": {"kind": "sums", '
        '"n_reports": 2, "sums": {"data": "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "dtype": "int64", "shape": [1, 11]}}}], "version": 1}'
    ),
    "subset": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "9d51c8fb1e225899", "protocol": {"categories":'
        ' ["a", "b", "c", "d", "e", "f"], "delta": 0.0, "epsilon": 0.5, "format": "skldp-protocol", "kind": '
        '"CategoryProtocol", "mechanism": "subset", "n_features": 1, "version": 1}, "tally": {"kind": "pairs", '
        '"n_reports": 2, "pairs": {"data": "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAA", "dtype": "int64", '
        '"shape": [6, 6]}}}], "version": 1}'
    ),
    "subset, no noise": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "ccc6d2db604249ff", "protocol": {"categories":'
        ' ["a", "b", "c", "d", "e", "f"], "delta": 0.0, "epsilon": "inf", "format": "skldp-protocol", "kind": '
        '"CategoryProtocol", "mechanism": "subset", "n_features": 1, "version": 1}, "tally": {"kind": "pairs", '
        '"n_reports": 2, "pairs": {"data": "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "dtype": "int64", '
        '"shape": [6, 6]}}}], "version": 1}'
    ),
    "unary": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "ae5996814a325b29", "protocol": {"categories":'
        ' [0, 1, 2, 3], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": "CategoryProtocol", '
        '"mechanism": "oue", "n_features": 1, "version": 1}, "tally": {"kind": "pairs", "n_reports": 2, "pairs": '
        '{"data": "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
        'AAAAAAABAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAgAAAAAAAAA=", "dtype": "int64", "shape": [4, '
        '4]}}}], "version": 1}'
    ),
    "response": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "b9d3bfed78f893f5", "protocol": {"categories":'
        ' [[0, "a"], [1, "b"], [1, "c"]], "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "kind": '
        '"CategoryProtocol", "mechanism": "rr", "n_features": 2, "version": 1}, "tally": {"kind": "sums", "n_reports": '
        '1, "sums": {"data": "AAAAAAAAAAABAAAAAAAAAAAAAAAAAAAA", "dtype": "int64", "shape": [3]}}}], "version": 1}'
    ),
    "moments": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "90ea972b9651633b", "protocol": {"bounds_y": '
        '[-1.0, 1.0], "data_norm": 1.0, "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "intercept_weight": '
        '0.7071067811865476, "kind": "MomentProtocol", "mechanism": "sphere", "n_features": 2, "version": 1, '
        '"y_weight": 0.7071067811865476}, "tally": {"kind": "sums", "n_reports": 2, "sums": {"data": [-1823, 4016, '
        '-999, -11607, 10480, 15577, -5476, 7109, -6799, -2915], "dtype": "integer", "shape": [10]}}}], "version": 1}'
    ),
    "noisy moments": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "b4e202d6263c14db", "protocol": {"bounds_y": '
        '[-1.0, 1.0], "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": "skldp-protocol", "intercept_weight":'
        ' 0.70703125, "kind": "MomentProtocol", "mechanism": "gaussian", "n_features": 2, "version": 1, "y_weight": '
        '0.70703125}, "tally": {"kind": "sums", "n_reports": 2, "sums": {"data": [786150, -618509, 2194844, -534514, '
        '-713555, 205005, -901457, -1303030, -331362], "dtype": "integer", "shape": [9]}}}], "version": 1}'
    ),
    "records": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "64b49c8790557a68", "protocol": {"bounds_y": '
        '[-1.0, 1.0], "centred": true, "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": "skldp-protocol", '
        '"kind": "RecordProtocol", "n_features": 2, "version": 1, "y_weight": 0.7071067811865476}, "tally": {"kind": '
        '"sums", "n_reports": 2, "sums": {"data": [2, 584464, -1140944, 170037, 584464, 261525156040, -291982216820, '
        '118508798002, -1140944, -291982216820, 669803013250, -65569237937, 170037, 118508798002, -65569237937, '
        '66657296069], "dtype": "integer", "shape": [4, 4]}}}], "version": 1}'
    ),
    "label moments": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "c7e484d324123804", "protocol": {"classes": '
        '[0, 1], "data_norm": 1.0, "delta": 0.0, "epsilon": 1.0, "format": "skldp-protocol", "intercept_weight": '
        '0.7071067811865476, "kind": "LabelMomentProtocol", "mechanism": "sphere", "n_features": 2, "version": 1, '
        '"y_weight": 0.7071067811865476}, "tally": {"kind": "sums", "n_reports": 2, "sums": {"data": [-9329, 188, 9143,'
        ' 7637, 7504, -5561, -6571, 249, 12186], "dtype": "integer", "shape": [9]}}}], "version": 1}'
    ),
    "label records": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "91788b0855735d24", "protocol": '
        '{"budget_split": 0.5, "classes": [0, 1], "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "format": '
        '"skldp-protocol", "kind": "LabelRecordProtocol", "n_features": 2, "version": 1}, "tally": {"kind": "reports", '
        '"n_reports": 2, "reports": {"data": "3tbz/19eAgABAAAAe6ASAMV1BgAAAAAA", "dtype": "int32", "shape": [2, 3]}}}],'
        ' "version": 1}'
    ),
    "gradients": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "4b245681488a81ef", "protocol": {"bounds_y": '
        'null, "classes": [-1, 1], "clip_norm": 1.0, "data_norm": 1.0, "delta": 1e-05, "epsilon": 1.0, "fit_intercept":'
        ' true, "format": "skldp-protocol", "kind": "GradientProtocol", "loss": "logistic", "mechanism": "gaussian", '
        '"n_features": 2, "version": 1}, "tally": {"kind": "sums", "n_reports": 2, "sums": {"data": '
        '"q58DAAAAAADxHAwAAAAAACe6DgAAAAAA", "dtype": "int64", "shape": [3]}}}], "version": 1}'
    ),
    "subset, rows": (
        '{"format": "skldp-aggregate", "n_rejected": 0, "parts": [{"id": "9d51c8fb1e225899", "protocol": {"categories":'
        ' ["a", "b", "c", "d", "e", "f"], "delta": 0.0, "epsilon": 0.5, "format": "skldp-protocol", "kind": '
        '"CategoryProtocol", "mechanism": "subset", "n_features": 1, "version": 1}, "tally": {"kind": "rows", '
        '"multiplicity": {"data": "AQAAAAAAAAABAAAAAAAAAA==", "dtype": "int64", "shape": [2]}, "n_reports": 2, "rows": '
        '{"data": "hIg=", "dtype": "uint8", "shape": [2, 1]}, "width": 6}}], "version": 1}'
    ),
}

# Archives (npz), in base 64.
ARCHIVES = {
    "square wave, reports": (
        'UEsDBC0AAAAAAAAAIQC1+ep5//////////8KABQAaGVhZGVyLm5weQEAEACnAQAAAAAAAKcBAAAAAAAAk05VTVBZAQB2AHsnZGVzY3InOiAnfH'
        'UxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDI5NSwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg'
        'ICAgICAgICAgICAgICAgICAgICAgIAp7ImZvcm1hdCI6ICJza2xkcC1yZXBvcnRzIiwgImlkIjogImQ0NjUyODU0ZjllZTNmOGQiLCAibl9yZX'
        'BvcnRzIjogMiwgInByb3RvY29sIjogeyJib3VuZHMiOiBbMC4wLCAxMC4wXSwgImRlbHRhIjogMC4wLCAiZXBzaWxvbiI6IDEuMCwgImZvcm1h'
        'dCI6ICJza2xkcC1wcm90b2NvbCIsICJraW5kIjogIlZhbHVlUHJvdG9jb2wiLCAibWVjaGFuaXNtIjogInNxdWFyZV93YXZlIiwgIm5fZmVhdH'
        'VyZXMiOiAxLCAibl9sZXZlbHMiOiA4LCAidmVyc2lvbiI6IDEsICJ3aW5kb3ciOiAiYXV0byJ9LCAidmVyc2lvbiI6IDF9UEsDBC0AAAAAAAAA'
        'IQCVYSaF//////////8LABQAcmVwb3J0cy5ucHkBABAAggAAAAAAAACCAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJ3xpMScsICdmb3J0cm'
        'FuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAxKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg'
        'ICAgICAgICAgICAKAAJQSwECLQMtAAAAAAAAACEAtfnqeacBAACnAQAACgAAAAAAAAAAAAAAgAEAAAAAaGVhZGVyLm5weVBLAQItAy0AAAAAAA'
        'AAIQCVYSaFggAAAIIAAAALAAAAAAAAAAAAAACAAeMBAAByZXBvcnRzLm5weVBLBQYAAAAAAgACAHEAAACiAgAAAAA='
    ),
    "subset, reports": (
        'UEsDBC0AAAAAAAAAIQA5Fx2B//////////8KABQAaGVhZGVyLm5weQEAEACbAQAAAAAAAJsBAAAAAAAAk05VTVBZAQB2AHsnZGVzY3InOiAnfH'
        'UxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDI4MywpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg'
        'ICAgICAgICAgICAgICAgICAgICAgIAp7ImZvcm1hdCI6ICJza2xkcC1yZXBvcnRzIiwgImlkIjogIjlkNTFjOGZiMWUyMjU4OTkiLCAibl9yZX'
        'BvcnRzIjogMiwgInByb3RvY29sIjogeyJjYXRlZ29yaWVzIjogWyJhIiwgImIiLCAiYyIsICJkIiwgImUiLCAiZiJdLCAiZGVsdGEiOiAwLjAs'
        'ICJlcHNpbG9uIjogMC41LCAiZm9ybWF0IjogInNrbGRwLXByb3RvY29sIiwgImtpbmQiOiAiQ2F0ZWdvcnlQcm90b2NvbCIsICJtZWNoYW5pc2'
        '0iOiAic3Vic2V0IiwgIm5fZmVhdHVyZXMiOiAxLCAidmVyc2lvbiI6IDF9LCAidmVyc2lvbiI6IDF9UEsDBC0AAAAAAAAAIQBIcTku////////'
        '//8LABQAcmVwb3J0cy5ucHkBABAAggAAAAAAAACCAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJ3x1MScsICdmb3J0cmFuX29yZGVyJzogRm'
        'Fsc2UsICdzaGFwZSc6ICgyLCAxKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAK'
        'hIhQSwECLQMtAAAAAAAAACEAORcdgZsBAACbAQAACgAAAAAAAAAAAAAAgAEAAAAAaGVhZGVyLm5weVBLAQItAy0AAAAAAAAAIQBIcTkuggAAAI'
        'IAAAALAAAAAAAAAAAAAACAAdcBAAByZXBvcnRzLm5weVBLBQYAAAAAAgACAHEAAACWAgAAAAA='
    ),
    "subset, aggregate": (
        'UEsDBC0AAAAAAAAAIQBnLmnr//////////8KABQAaGVhZGVyLm5weQEAEAAmAgAAAAAAACYCAAAAAAAAk05VTVBZAQB2AHsnZGVzY3InOiAnfH'
        'UxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDQyMiwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg'
        'ICAgICAgICAgICAgICAgICAgICAgIAp7ImZvcm1hdCI6ICJza2xkcC1hZ2dyZWdhdGUiLCAibl9yZWplY3RlZCI6IDAsICJwYXJ0cyI6IFt7Im'
        'lkIjogIjlkNTFjOGZiMWUyMjU4OTkiLCAicHJvdG9jb2wiOiB7ImNhdGVnb3JpZXMiOiBbImEiLCAiYiIsICJjIiwgImQiLCAiZSIsICJmIl0s'
        'ICJkZWx0YSI6IDAuMCwgImVwc2lsb24iOiAwLjUsICJmb3JtYXQiOiAic2tsZHAtcHJvdG9jb2wiLCAia2luZCI6ICJDYXRlZ29yeVByb3RvY2'
        '9sIiwgIm1lY2hhbmlzbSI6ICJzdWJzZXQiLCAibl9mZWF0dXJlcyI6IDEsICJ2ZXJzaW9uIjogMX0sICJ0YWxseSI6IHsia2luZCI6ICJyb3dz'
        'IiwgIm11bHRpcGxpY2l0eSI6IHsibWVtYmVyIjogImFycmF5MSJ9LCAibl9yZXBvcnRzIjogMiwgInJvd3MiOiB7Im1lbWJlciI6ICJhcnJheT'
        'AifSwgIndpZHRoIjogNn19XSwgInZlcnNpb24iOiAxfVBLAwQtAAAAAAAAACEASHE5Lv//////////CgAUAGFycmF5MC5ucHkBABAAggAAAAAA'
        'AACCAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJ3x1MScsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAxKSwgfSAgIC'
        'AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAKhIhQSwMELQAAAAAAAAAhAO/7k2f/////////'
        '/woAFABhcnJheTEubnB5AQAQAJAAAAAAAAAAkAAAAAAAAACTTlVNUFkBAHYAeydkZXNjcic6ICc8aTgnLCAnZm9ydHJhbl9vcmRlcic6IEZhbH'
        'NlLCAnc2hhcGUnOiAoMiwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgCgEA'
        'AAAAAAAAAQAAAAAAAABQSwECLQMtAAAAAAAAACEAZy5p6yYCAAAmAgAACgAAAAAAAAAAAAAAgAEAAAAAaGVhZGVyLm5weVBLAQItAy0AAAAAAA'
        'AAIQBIcTkuggAAAIIAAAAKAAAAAAAAAAAAAACAAWICAABhcnJheTAubnB5UEsBAi0DLQAAAAAAAAAhAO/7k2eQAAAAkAAAAAoAAAAAAAAAAAAA'
        'AIABIAMAAGFycmF5MS5ucHlQSwUGAAAAAAMAAwCoAAAA7AMAAAAA'
    ),
}

# The reports in the archives.
REPORTS = {
    "square wave, reports": [[0], [2]],
    "subset, reports": [[1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0]],
}

# The model of the first round of the gradients.
MODEL = '{"protocol_id": "4b245681488a81ef", "round": 0, "theta": [0.0, 0.0, 0.0]}'
