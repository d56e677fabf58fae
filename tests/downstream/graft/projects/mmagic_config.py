"""mmagic's own SRCNN, with small data: two validation sets, each with metrics of its own."""

_base_ = ["{{$CONFIGS:}}/srcnn/srcnn_x4k915_1xb16-1000k_div2k.py"]

custom_imports = dict(imports=["pairs"], allow_failed_imports=False)
model = dict(generator=dict(channels=(3, 8, 4, 3)))
# Without what reads files, which the pictures here do not need.
train_pipeline = [one for one in _base_.train_pipeline if one["type"] != "LoadImageFromFile"]
for one in train_pipeline:
    if one["type"] == "PairedRandomCrop":
        one["gt_patch_size"] = 32
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    dataset=dict(
        _delete_=True, type="Pairs", count=10, name="div2k", pipeline=train_pipeline
    ),
)  # fmt: skip


def validated_on(count, name):
    return dict(
        batch_size=1,
        num_workers=0,
        persistent_workers=False,
        drop_last=False,
        sampler=dict(type="DefaultSampler", shuffle=False),
        dataset=dict(
            type="Pairs", count=count, name=name, pipeline=[dict(type="PackInputs")], test_mode=True
        ),
    )


val_dataloader = [validated_on(3, "set5"), validated_on(2, "set14")]
val_evaluator = [
    dict(type="Evaluator", metrics=[dict(type="MAE", prefix="Set5")]),
    dict(
        type="Evaluator",
        metrics=[dict(type="PSNR", prefix="Set14"), dict(type="SSIM", prefix="Set14")],
    ),
]
test_dataloader = test_evaluator = test_cfg = None
train_cfg = dict(max_iters=20, val_interval=5)
param_scheduler = dict(periods=[5, 5, 5, 5])
default_hooks = dict(
    logger=dict(interval=1),
    checkpoint=dict(interval=4, out_dir=None, save_best="Set14/PSNR", rule="greater"),
)
custom_hooks = [dict(type="BasicVisualizationHook", interval=1), dict(type="mmengine.KillAt")]
env_cfg = dict(mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0))
log_level = "ERROR"
randomness = dict(seed=7)
