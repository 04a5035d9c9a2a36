"""rules.py: checks what docs/model.md and the safetensors format require of a file, and a reader may ignore."""
import json
import struct

TYPES = {"F32": 4, "F64": 8, "I32": 4, "U64": 8, "U8": 1}
BEGINNING = b'{"__metadata__":{"checksum":"'


def require(condition, message):
    if not condition:
        raise ValueError(message)


def unique(pairs):
    """A JSON object without duplicate names."""
    found = dict(pairs)
    require(len(found) == len(pairs), "the header has a duplicate name")
    return found


def check_header(data):
    """The header's members, in a file of the right size."""
    size = struct.unpack_from("<Q", data)[0]
    require(size % 8 == 0 and 8 + size <= len(data), "the header has a wrong size")
    text = data[8:8 + size]
    digits = text[29:45].decode("ascii")
    require(text.startswith(BEGINNING), "the checksum is not the first member")
    require(all(c in "0123456789abcdef" for c in digits) and text[45:46] == b'"', "the checksum is not 16 digits")
    require(text.rstrip(b" ").endswith(b"}"), "the header is not padded with spaces")
    header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    metadata = header.pop("__metadata__")
    require(metadata["checksum"] == digits, "the checksum is not in bytes 29 to 44")
    require(all(isinstance(value, str) for value in metadata.values()), "a value of the metadata is not a string")
    position = 0
    for name, entry in header.items():
        require(set(entry) == {"dtype", "shape", "data_offsets"}, f"the entry of {name} has other members")
        begin, end = entry["data_offsets"]
        rows, cols = entry["shape"]
        require(min(rows, cols) >= 0 and begin == position, f"there is a gap before {name}")
        require(end - begin == TYPES[entry["dtype"]] * rows * cols, f"{name} has the wrong size")
        position = end
    require(8 + size + position == len(data), "there are bytes after the last tensor, or too few")


def check_file(path, model):
    """The file of a model."""
    with open(path, "rb") as file:
        check_header(file.read())
    require(model.metadata["task"] in ("classify", "recommend"), "another task")
    require(len(model.names) == model.number("event_types"), "the vocabulary does not have event_types names")
    for name in (name for name in model.tensors if name.startswith("vocabulary.") and name.endswith(".bytes")):
        offset, text = model.tensors[name[:-5] + "offset"][0].tolist(), model.tensors[name].tobytes()
        require(offset[-1] == len(text) and all(text[end - 1] == 0 for end in offset[1:]), f"{name} has a wrong offset")
    if "when.season" in model.tensors:
        level = model.row("when.season")
        require(len(level) == 168 and abs(level.mean() - 1) < 1e-9 and level.min() > 0, "when.season is wrong")
    if model.metadata["model"] == "recency":
        require(model.row("recency.half_life")[0] == model.real("half_life"), "the half-life of the metadata is another one")
