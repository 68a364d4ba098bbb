"""Our datasets in the loops of Accelerate, Transformers and Lightning: two processes, gloo, the real libraries.

What each process saw of each way to read comes back as lists of labels, one a batch.
"""

import json
import os
import socket
import traceback

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import grainstore
from grainstore.torch import IterableDataset, MapDataset

RANKS, COUNT, BATCH = 2, 200, 10


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("trainers") / "train.grain"
    with grainstore.Writer(path, {"x": "float32[3]", "label": "int64"}, keyed=False) as writer:
        for number in range(COUNT):
            writer.write(x=np.full(3, number, np.float32), label=number)
    return str(path)


def run(rank, function, path, folder, port):
    torch.set_num_threads(1)
    # Workers that import torch again would take seconds each.
    torch.multiprocessing.set_start_method("fork", force=True)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GROUP_RANK="0", TORCHELASTIC_RUN_ID="test")
    os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="1")
    seen = function(path, folder)
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(seen, file)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def on_two_ranks(function, path, folder):
    """What the function returned on each rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(run, (function, path, str(folder), port), nprocs=RANKS)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


def batches_of(loader):
    return [batch["label"].tolist() for batch in loader]


def error_of(function):
    """The name and the message of what a function raises."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def assert_each_once(shares):
    """Every sample was on one rank, and the ranks had equally many batches."""
    assert len({len(share) for share in shares}) == 1
    assert sorted(label for share in shares for batch in share for label in batch) == list(range(COUNT))


# Transformers


def with_transformers(path, folder):
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.seen = torch.nn.Linear(3, 1), []

        def forward(self, x, labels):
            self.seen.append(labels.tolist())
            return {"loss": self.linear(x).squeeze(1).mean() * 1e-6}

    def trained(dataset, resume=None, **options):
        arguments = TrainingArguments(
            output_dir=f"{folder}/out",
            per_device_train_batch_size=BATCH,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            **{"num_train_epochs": 2, "save_strategy": "no", "logging_strategy": "no", **options},
        )
        model = Model()
        trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
        trainer.train(resume_from_checkpoint=resume)
        return model.seen

    seen = {}
    for workers in (0, 2):
        both = trained(IterableDataset(path, seed=3), dataloader_num_workers=workers)
        seen[f"iterable {workers}"] = [both[: len(both) // 2], both[len(both) // 2 :]]
    seen["mapped"] = [trained(MapDataset(path), num_train_epochs=1)]
    seen["filtered"] = [
        trained(IterableDataset(path, seed=3), num_train_epochs=1, accelerator_config={"dispatch_batches": False})
    ]
    seen["batches"] = error_of(lambda: trained(IterableDataset(path, BATCH)))
    # Stopped in the second epoch, and continued.
    first = trained(IterableDataset(path, seed=3), max_steps=14, save_strategy="steps", save_steps=14)
    rest = trained(IterableDataset(path, seed=3), resume=f"{folder}/out/checkpoint-14", max_steps=20)
    seen["resumed"] = [first[:10], first[10:] + rest]
    return seen


def test_the_trainer_of_transformers_visits_every_sample_once_and_resumes(path, tmp_path):
    ranks = on_two_ranks(with_transformers, path, tmp_path)
    for name in ("iterable 0", "iterable 2", "mapped", "filtered", "resumed"):
        epochs = ranks[0][name]
        for epoch in range(len(epochs)):
            assert_each_once([rank[name][epoch] for rank in ranks])
        assert epochs[0] != epochs[-1] or len(epochs) == 1
    assert "use DataLoader(dataset, batch_size=None)" in ranks[0]["batches"]


# Lightning


def with_lightning(path, folder):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.linear, self.seen = torch.nn.Linear(3, 1), []

        def training_step(self, batch):
            self.seen.append(batch["label"].tolist())
            return self.linear(batch["x"]).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-6)

    class Data(lightning.LightningDataModule):
        """The recipe of the page."""

        def __init__(self, dataset, workers):
            super().__init__()
            self.dataset, self.workers = dataset, workers

        def train_dataloader(self):
            self.dataset.set_epoch(self.trainer.current_epoch)
            return StatefulDataLoader(self.dataset, batch_size=None, num_workers=self.workers)

    def trained(data, resume=None, **options):
        module = Module()
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy="ddp",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            **{"max_epochs": 2, "enable_checkpointing": False, **options},
        )
        kind = "datamodule" if isinstance(data, lightning.LightningDataModule) else "train_dataloaders"
        trainer.fit(module, **{kind: data}, ckpt_path=resume)
        half = len(module.seen) // 2 if trainer.max_epochs == 2 else len(module.seen)
        return module.seen, [module.seen[:half], module.seen[half:]]

    seen = {}
    for workers in (0, 2):
        data = Data(IterableDataset(path, BATCH, seed=3), workers)
        seen[f"iterable {workers}"] = trained(data, reload_dataloaders_every_n_epochs=1)[1]
    seen["mapped"] = trained(DataLoader(MapDataset(path), BATCH, shuffle=True), max_epochs=1)[1][:1]
    seen["loader"] = trained(DataLoader(IterableDataset(path, BATCH), None))[1]
    data = Data(IterableDataset(path, BATCH, seed=3), 2)
    saving = lightning.pytorch.callbacks.ModelCheckpoint(folder, "saved", every_n_train_steps=14)
    stopped = {"max_epochs": -1, "max_steps": 14, "enable_checkpointing": True, "callbacks": [saving]}
    first = trained(data, reload_dataloaders_every_n_epochs=1, **stopped)[0]
    data = Data(IterableDataset(path, BATCH, seed=3), 2)
    rest = trained(data, f"{folder}/saved.ckpt", reload_dataloaders_every_n_epochs=1)[0]
    seen["resumed"] = [first[:10], first[10:] + rest]
    return seen


def test_lightning_visits_every_sample_once_and_resumes(path, tmp_path):
    ranks = on_two_ranks(with_lightning, path, tmp_path)
    for name, epochs in ranks[0].items():
        for epoch in range(len(epochs)):
            assert_each_once([rank[name][epoch] for rank in ranks])
        assert epochs[0] != epochs[-1] or len(epochs) == 1


# Accelerate


def with_accelerate(path, folder):
    from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches

    seen = {}

    def accelerator(**options):
        return Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))

    dispatching, filtering = accelerator(), accelerator(dispatch_batches=False)
    for workers in (0, 2):
        for name, options in (("batches", {"batch_size": BATCH}), ("samples", {})):
            dataset = IterableDataset(path, **options, seed=3)
            loader = DataLoader(dataset, batch_size=None if options else BATCH, num_workers=workers)
            prepared = dispatching.prepare(loader)
            seen[f"dispatched {name} {workers}"] = [batches_of(prepared) for _ in range(2)]
            seen[f"length {name} {workers}"] = len(prepared)
    seen["skipped"] = [batches_of(skip_first_batches(dispatching.prepare(loader), 3))]
    dataset = IterableDataset(path)
    seen["spawned"] = [batches_of(filtering.prepare(DataLoader(dataset, BATCH, num_workers=1, multiprocessing_context="spawn")))]
    split = accelerator(split_batches=True)
    seen["split"] = [batches_of(split.prepare(DataLoader(IterableDataset(path), 2 * BATCH)))]
    mapped = DataLoader(MapDataset(path), BATCH, shuffle=True, num_workers=1)
    seen["mapped"] = [batches_of(dispatching.prepare(mapped))]
    seen["mapped filtered"] = [batches_of(filtering.prepare(DataLoader(MapDataset(path), BATCH)))]
    for workers in (0, 2):
        dataset = IterableDataset(path)
        with pytest.warns(UserWarning, match="every rank reads") if workers == 0 else pytest.MonkeyPatch.context():
            seen[f"filtered {workers}"] = [batches_of(filtering.prepare(DataLoader(dataset, BATCH, num_workers=workers)))]
    batched = filtering.prepare(DataLoader(IterableDataset(path, BATCH), None))
    seen["filtered batches"] = error_of(lambda: batches_of(batched))
    rank = dispatching.process_index
    divided_twice = dispatching.prepare(DataLoader(IterableDataset(path, BATCH, rank=rank, world_size=RANKS), None))
    seen["divided twice"] = error_of(lambda: divided_twice.set_epoch(0))
    both = dispatching.prepare(DataLoader(IterableDataset(path, BATCH), BATCH))
    seen["batches of batches"] = error_of(lambda: iter(both.base_dataloader))
    stateful = accelerator(use_stateful_dataloader=True)
    seen["stateful"] = error_of(lambda: stateful.prepare(DataLoader(IterableDataset(path, BATCH), None)))
    # What Accelerate does not get is this rank's share, with states.
    dataset = IterableDataset(path, BATCH, seed=3)
    seen["own DataLoader"] = [batches_of(DataLoader(dataset, None, num_workers=2))]
    # It is no DataLoader, and comes back as it is.
    seen["own Loader"] = [batches_of(dispatching.prepare(grainstore.Loader(grainstore.open(path), BATCH)))]
    return seen


def test_accelerate_visits_every_sample_once_or_refuses(path, tmp_path):
    ranks = on_two_ranks(with_accelerate, path, tmp_path)
    seen = ranks[0]
    names = ["mapped", "mapped filtered", "filtered 0", "filtered 2", "spawned", "split", "own Loader", "own DataLoader"]
    for workers in (0, 2):
        for kind in ("batches", "samples"):
            names.append(f"dispatched {kind} {workers}")
            assert seen[f"length {kind} {workers}"] == len(seen[names[-1]][0]) == 10
            assert seen[names[-1]][0] != seen[names[-1]][1]
    for name in names:
        for epoch in range(len(seen[name])):
            assert_each_once([rank[name][epoch] for rank in ranks])
    # Three batches of two ranks less.
    assert_each_once([rank["dispatched samples 2"][0][:3] + rank["skipped"][0] for rank in ranks])
    refused = seen["filtered batches"]
    assert "InvalidOption: IterableDatasetShard divides samples among the ranks, and the dataset gives batches" in refused
    refused = seen["divided twice"]
    assert "InvalidOption: the dataset gives the share of rank 0 of 2, and DataLoaderDispatcher divides" in refused
    assert "use DataLoader(dataset, batch_size=None)" in seen["batches of batches"]
    assert "InvalidState: Accelerate's DataLoaderDispatcher saves states from which batches" in seen["stateful"]
