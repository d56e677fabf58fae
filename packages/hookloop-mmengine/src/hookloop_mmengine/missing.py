"""Names of MMEngine that this dialect does not offer, and what to use instead."""

from __future__ import annotations

from typing import NoReturn

GRAFT = "install mmengine and use `hookloop run --graft mmengine` (`dialects.graft` in Python)"
"""The other way to run a project: the real package, with our engine in it."""

_WRITER = "the native hook {} among custom_hooks"

# No hook file of a public project was found to need them.
_ONLY_THERE = """
BaseDataset ClassBalancedDataset Compose ConcatDataset RepeatDataset force_full_init
dict_from_file list_from_file Timer TimerError call_command check_time get_installed_path
install_package is_installed convert_sync_batchnorm detect_anomalous_params revert_sync_batchnorm
draw_featmap BaseInit Caffe2XavierInit ConstantInit ImgDataPreprocessor InstanceData KaimingInit
LabelData NormalInit PixelData PretrainedInit TruncNormalInit UniformInit XavierInit
all_reduce_params apply_to backends bias_init_with_prob caffe2_xavier_init cast_data_device
check_file_exist check_prerequisites collect_results_cpu collect_results_gpu concat_list
constant_init copy_if_symlink_fails copyfile copyfile_from_local copyfile_to_local copytree
copytree_from_local copytree_to_local count_registered_modules deprecated_api_warning
deprecated_function fopen gather gather_object generate_presigned_url get_comm_device
get_data_device get_git_hash get_local_group has_method import_modules_from_strings
init_local_group initialize is_abs is_filepath is_method_overridden is_str iter_cast kaiming_init
list_cast list_dir_or_file merge_dict normal_init prefix_to_backends register_backend
register_handler remove requires_executable requires_package rmtree scandir slice_list stack_batch
symlink to_1tuple to_2tuple to_3tuple to_4tuple to_ntuple track_iter_progress
track_parallel_progress track_progress track_progress_rich traverse_registry_tree
trunc_normal_init tuple_cast uniform_init update_init_info xavier_init
"""

MISSING = {
    "WandbVisBackend": _WRITER.format("hookloop.hooks.WriteWandb"),
    "MLflowVisBackend": _WRITER.format("hookloop.hooks.WriteMLflow"),
    **dict.fromkeys(
        ("ClearMLVisBackend", "NeptuneVisBackend", "DVCLiveVisBackend", "AimVisBackend"),
        "LocalVisBackend, TensorboardVisBackend, or a subclass of BaseVisBackend",
    ),
    "FlexibleRunner": "Runner, with launcher='pytorch' for several processes",
    **dict.fromkeys(
        ("MMSeparateDistributedDataParallel", "MMFullyShardedDataParallel"),
        "launcher='pytorch' for several processes",
    ),
    "ApexOptimWrapper": "AmpOptimWrapper",
    "ZeroRedundancyOptimizer": "an optimizer of torch",
    **dict.fromkeys(
        ("HTTPBackend", "LmdbBackend", "MemcachedBackend", "PetrelBackend"),
        "LocalBackend, or fsspec in the hook itself",
    ),
    **dict.fromkeys(_ONLY_THERE.split(), "the real package"),
    **dict.fromkeys(
        (
            "get_deprecated_model_names",
            "get_external_models",
            "get_mmcls_models",
            "get_torchvision_models",
        ),
        "the URL of the file",
    ),
    "turn_on_activation_checkpointing": "torch.utils.checkpoint in the model",
    "STRATEGIES": "launcher='pytorch' for several processes",
    "RunnerTestCase": "hookloop.testing",
    # Whole modules, for `from mmengine import hub`.
    **dict.fromkeys(("analysis", "hub", "infer"), "the project's own functions"),
}


def message_for(name: str) -> str:
    """Return the message that a name is not offered, with the replacement."""
    return f"MMEngine's {name} is not offered by hookloop. Use {MISSING[name]}; or {GRAFT}."


def reject(module: str, name: str) -> NoReturn:
    """Reject the import of a name; the message names the replacement if MMEngine has the name."""
    if name in MISSING:
        # Not an AttributeError: `from module import name` would replace its message.
        raise ImportError(message_for(name), name=module)
    raise AttributeError(
        f"module '{module}' has no attribute '{name}'. If MMEngine has it: {GRAFT}."
    )
