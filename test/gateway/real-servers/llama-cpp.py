"""Serves a model of random weights with llama.cpp: `llama-cpp.py FILE PORT`. Ends with its standard input."""

import sys

import gguf
import numpy
import xllamacpp

file, port = sys.argv[1], int(sys.argv[2])
width, inner, heads, layers = 64, 128, 4, 2
byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
tokens = ["<unk>", "<s>", "</s>", *byte_tokens]
Kind = gguf.TokenType

writer = gguf.GGUFWriter(file, "llama")
writer.add_context_length(131072)
writer.add_embedding_length(width)
writer.add_block_count(layers)
writer.add_feed_forward_length(inner)
writer.add_head_count(heads)
writer.add_head_count_kv(heads)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(width // heads)
writer.add_vocab_size(len(tokens))
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types([Kind.UNKNOWN, Kind.CONTROL, Kind.CONTROL, *[Kind.BYTE] * 256])
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_unk_token_id(0)

random = numpy.random.default_rng(1)


def weights(*shape):
    return (random.standard_normal(shape) * 0.1).astype(numpy.float32)


def ones():
    return numpy.ones(width, numpy.float32)


writer.add_tensor("token_embd.weight", weights(len(tokens), width))
writer.add_tensor("output_norm.weight", ones())
writer.add_tensor("output.weight", weights(len(tokens), width))
for layer in range(layers):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", weights(width, width))
    writer.add_tensor(f"blk.{layer}.attn_norm.weight", ones())
    writer.add_tensor(f"blk.{layer}.ffn_norm.weight", ones())
    writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(inner, width))
    writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(inner, width))
    writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(width, inner))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

parameters = xllamacpp.CommonParams()
parameters.model.path = file
parameters.n_ctx = 131072
parameters.n_predict = 200
parameters.port = port
parameters.use_jinja = True
parameters.cpuparams.n_threads = 1
parameters.warmup = False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
