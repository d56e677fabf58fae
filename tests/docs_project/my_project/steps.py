"""Two losses, one for each optimizer of a model that makes and one that judges."""

from torch.nn.functional import softplus


def discriminator_step(run, batch):
    real, _ = batch
    made = run.model.generator(real).detach()
    judge = run.model.discriminator
    return softplus(-judge(real)).mean() + softplus(judge(made)).mean()


def generator_step(run, batch):
    real, _ = batch
    return softplus(-run.model.discriminator(run.model.generator(real))).mean()
