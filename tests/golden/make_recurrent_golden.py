"""make_recurrent_golden.py: writes recurrent.safetensors: outputs and gradients of torch.nn.LSTM and torch.nn.GRU, which
tests/unit/test_recurrent.c compares with.

    python3 tests/golden/make_recurrent_golden.py          (PyTorch and NumPy; not needed to run the tests)

Everything is drawn from a fixed seed. Inputs and parameters are F32, so that float and double kernels start from the same
numbers; torch computes in float64 on a packed sequence of sequences of different lengths.

For each case of a layer the file holds, with "<layer>.<case>." before the name (T tokens of all sequences laid end to end, L layers):

    segment                                  [1, sequences + 1]: token offsets
    input, gradient.input                    [T, input_size]
    NAME, gradient.NAME                      weight_ih_lN, weight_hh_lN, bias_ih_lN, bias_hh_lN of each layer N, as torch names them
    output                                   [T, hidden_size]: the last layer's hidden states
    cell                                     [sequences, hidden_size]: the last layer's final cell states (LSTM)
    seed                                     [T, hidden_size]: the loss is sum(output * seed)

and in its metadata the sizes of each case. Biases are multiples of 1/1024, so that bias_ih + bias_hh is exact in float.
"""
import json
import os
import struct

import numpy as np
import torch

CASES = {
    "small": dict(input_size=3, hidden_size=5, layers=1, lengths=(4, 1, 6, 2, 6, 3)),
    "stacked": dict(input_size=7, hidden_size=12, layers=2, lengths=(9, 13, 1, 2, 30, 5, 9, 9)),
    "wide": dict(input_size=9, hidden_size=33, layers=1, lengths=(40, 3, 17)),
}
LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
TYPES = {"float32": "F32", "float64": "F64", "int32": "I32"}


def draw_parameters(random, layer):
    """Spread so that gates are neither linear nor saturated."""
    start = {}
    for name, value in layer.named_parameters():
        if name.startswith("bias"):
            start[name] = np.round(random.normal(0, 0.5, tuple(value.shape)) * 1024).astype(np.float32)[None] / np.float32(1024)
        else:
            start[name] = random.normal(0, 1.2 / value.shape[1] ** 0.5, tuple(value.shape)).astype(np.float32)
        with torch.no_grad():
            value.copy_(torch.from_numpy(start[name].reshape(value.shape)))
    return start


def make_case(random, kind, name, case):
    lengths, hidden = case["lengths"], case["hidden_size"]
    layer = LAYERS[kind](case["input_size"], hidden, num_layers=case["layers"]).double()
    start = draw_parameters(random, layer)
    tokens = sum(lengths)
    given = random.normal(0, 1, (tokens, case["input_size"])).astype(np.float32)
    seed = random.normal(0, 1, (tokens, hidden)).astype(np.float32)
    x = torch.from_numpy(given).double().requires_grad_()
    packed = torch.nn.utils.rnn.pack_sequence(x.split(lengths), enforce_sorted=False)
    out, last = layer(packed)
    output = torch.cat(torch.nn.utils.rnn.unpack_sequence(out))
    (output * torch.from_numpy(seed)).sum().backward()
    tensors = {"segment": np.cumsum((0,) + lengths).astype(np.int32)[None], "input": given, "seed": seed,
               "output": output.detach().numpy(), "gradient.input": x.grad.numpy(), **start}
    if kind == "lstm":
        tensors["cell"] = last[1][-1].detach().numpy()
    for key, value in layer.named_parameters():
        tensors[f"gradient.{key}"] = value.grad.numpy().reshape(start[key].shape)
    return {f"{kind}.{name}.{key}": value for key, value in tensors.items()}


def save(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": TYPES[value.dtype.name], "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(20260102)
    tensors, metadata = {}, {}
    for kind in LAYERS:
        for name, case in CASES.items():
            tensors.update(make_case(random, kind, name, case))
            metadata.update({f"{kind}.{name}.{key}": str(case[key]) for key in ("input_size", "hidden_size", "layers")})
            metadata[f"{kind}.{name}.sequences"] = str(len(case["lengths"]))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurrent.safetensors")
    save(path, tensors, metadata)
    print(f"{len(tensors)} tensors, {os.path.getsize(path)} bytes in {path}")


if __name__ == "__main__":
    main()
