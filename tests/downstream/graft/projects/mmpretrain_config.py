"""A classifier of mmpretrain: random crops, mixed batches, averages, a switch of recipes."""

default_scope = "mmpretrain"
custom_imports = dict(imports=["pictures"], allow_failed_imports=False)
model = dict(
    type="ImageClassifier",
    backbone=dict(type="LeNet5", num_classes=-1),
    neck=dict(type="GlobalAveragePooling"),
    head=dict(
        type="LinearClsHead",
        num_classes=3,
        in_channels=120,
        loss=dict(type="LabelSmoothLoss", label_smooth_val=0.1, mode="original"),
        init_cfg=dict(type="Normal", layer="Linear", std=0.01),
    ),
    train_cfg=dict(augments=dict(type="Mixup", alpha=0.8)),
)
data_preprocessor = dict(num_classes=3, mean=[120.0], std=[60.0], to_rgb=False)
train_pipeline = [
    dict(type="RandomCrop", crop_size=32, padding=4),
    dict(type="RandomFlip", prob=0.5, direction="horizontal"),
    dict(type="PackInputs"),
]
train_dataloader = dict(
    batch_size=8,
    num_workers=0,
    dataset=dict(type="Pictures", pipeline=train_pipeline),
    sampler=dict(type="DefaultSampler", shuffle=True),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=0,
    dataset=dict(type="Pictures", pipeline=[dict(type="PackInputs")], test_mode=True),
    sampler=dict(type="DefaultSampler", shuffle=False),
)
val_evaluator = dict(type="Accuracy", topk=(1,))
val_cfg = dict()
train_cfg = dict(by_epoch=True, max_epochs=3, val_interval=1)
optim_wrapper = dict(
    optimizer=dict(type="AdamW", lr=1e-3, weight_decay=0.05), clip_grad=dict(max_norm=5.0)
)
param_scheduler = [
    dict(type="LinearLR", start_factor=0.1, begin=0, end=1, convert_to_iter_based=True),
    dict(type="CosineAnnealingLR", begin=1),
]
default_hooks = dict(
    logger=dict(type="LoggerHook", interval=1),
    checkpoint=dict(type="CheckpointHook", interval=1, save_best="auto", max_keep_ckpts=2),
    visualization=dict(type="VisualizationHook", enable=False),
)
custom_hooks = [
    dict(type="EMAHook", momentum=4e-2, priority="ABOVE_NORMAL"),
    dict(
        type="SwitchRecipeHook",
        schedule=[dict(action_epoch=3, batch_augments=None, train_pipeline=train_pipeline[1:])],
    ),
    dict(type="mmengine.KillAt"),
]
env_cfg = dict(mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0))
visualizer = dict(type="UniversalVisualizer", vis_backends=[dict(type="LocalVisBackend")])
log_level = "ERROR"
randomness = dict(seed=7)
