"""A segmentation of mmsegmentation by iterations, with random pictures and an endless sampler."""

default_scope = "mmseg"
custom_imports = dict(imports=["scenes"], allow_failed_imports=False)
norm_cfg = dict(type="BN", requires_grad=True)
model = dict(
    type="EncoderDecoder",
    data_preprocessor=dict(
        type="SegDataPreProcessor",
        mean=[120.0] * 3,
        std=[60.0] * 3,
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=(32, 32),
    ),
    backbone=dict(
        type="UNet",
        in_channels=3,
        base_channels=4,
        num_stages=3,
        strides=(1, 1, 1),
        enc_num_convs=(1, 1, 1),
        dec_num_convs=(1, 1),
        downsamples=(True, True),
        enc_dilations=(1, 1, 1),
        dec_dilations=(1, 1),
        norm_cfg=norm_cfg,
    ),
    decode_head=dict(
        type="FCNHead",
        in_channels=4,
        in_index=2,
        channels=4,
        num_convs=1,
        dropout_ratio=0.1,
        num_classes=3,
        norm_cfg=norm_cfg,
        loss_decode=dict(type="CrossEntropyLoss", loss_weight=1.0),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode="whole"),
)
pipeline = [
    dict(type="RandomFlip", prob=0.5),
    dict(type="PhotoMetricDistortion"),
    dict(type="PackSegInputs"),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    dataset=dict(type="Scenes", pipeline=pipeline),
    sampler=dict(type="InfiniteSampler", shuffle=True),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    dataset=dict(type="Scenes", pipeline=[dict(type="PackSegInputs")], test_mode=True),
    sampler=dict(type="DefaultSampler", shuffle=False),
)
val_evaluator = dict(type="IoUMetric", iou_metrics=["mIoU"])
val_cfg = dict(type="ValLoop")
train_cfg = dict(type="IterBasedTrainLoop", max_iters=20, val_interval=5)
optim_wrapper = dict(type="OptimWrapper", optimizer=dict(type="SGD", lr=0.01, momentum=0.9))
param_scheduler = [dict(type="PolyLR", eta_min=1e-4, power=0.9, begin=0, end=20, by_epoch=False)]
default_hooks = dict(
    logger=dict(type="LoggerHook", interval=1, log_metric_by_epoch=False),
    checkpoint=dict(type="CheckpointHook", by_epoch=False, interval=4, save_best="mIoU"),
    visualization=dict(type="SegVisualizationHook"),
)
custom_hooks = [dict(type="mmengine.KillAt")]
env_cfg = dict(mp_cfg=dict(mp_start_method="fork", opencv_num_threads=0))
visualizer = dict(
    type="SegLocalVisualizer", vis_backends=[dict(type="LocalVisBackend")], name="visualizer"
)
log_processor = dict(by_epoch=False)
log_level = "ERROR"
randomness = dict(seed=7)
