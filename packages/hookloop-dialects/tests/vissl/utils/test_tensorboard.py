"""The hook for TensorBoard from a config."""

from hookloop_dialects.vissl.utils import tensorboard


def test_the_hook_is_as_the_config_describes_it(tmp_path):
    setup = {"LOG_PARAMS": False, "LOG_PARAMS_EVERY_N_ITERS": 7}
    config = {"CHECKPOINT": {"DIR": str(tmp_path)}, "HOOKS": {"TENSORBOARD_SETUP": setup},
              "MONITORING": {"MONITOR_ACTIVATION_STATISTICS": 5}}  # fmt: skip
    hook = tensorboard.get_tensorboard_hook(config)
    hook.tb_writer.close()
    assert (hook.log_params, hook.log_params_every_n_iterations) == (False, 7)
    assert hook.log_params_gradients and hook.log_activation_statistics == 5
    assert hook.tb_writer.log_dir == f"{tmp_path}/tb_logs" and (tmp_path / "tb_logs").is_dir()
    assert tensorboard.is_tensorboard_available()
