"""WebDataset: shards of tar files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from contestants import WORKERS, Contestant, as_it_is
from samples import BATCH_SIZE

_SHARDS = 16
FIELD = "jpg"


class WebDataset(Contestant):
    name = "WebDataset"
    package = "webdataset"
    modules = ("webdataset", "torch.utils.data")
    settings = (
        f"{_SHARDS} tar files, all shuffled, WebLoader with {WORKERS} workers, together a shuffle buffer of up to 256 MiB; "
        "bytes, not decoded"
    )

    def write(self, path: Path, source: Path | None) -> None:
        from webdataset import ShardWriter

        path.mkdir()
        per_shard = -(-self.shape.samples // _SHARDS)
        with ShardWriter(f"{path}/%05d.tar", maxcount=per_shard, maxsize=1 << 60, verbose=0) as writer:
            for number, sample in enumerate(self.shape):
                writer.write({"__key__": f"{number:08}", FIELD: sample})

    def open(self, path: Path) -> None:
        self._names = sorted(map(str, path.glob("*.tar")))

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import webdataset

        shards = webdataset.WebDataset(self._names, shardshuffle=len(self._names), seed=seed)
        buffered = max(BATCH_SIZE, self.window_bytes // WORKERS // self.shape.longest)
        samples = shards.shuffle(buffered, initial=buffered).to_tuple(FIELD).batched(BATCH_SIZE, collation_fn=as_it_is)
        # Whole batches leave the workers, as its documentation recommends.
        loader = webdataset.WebLoader(samples, batch_size=None, num_workers=WORKERS)
        return ([sample for (sample,) in batch] for batch in loader)
