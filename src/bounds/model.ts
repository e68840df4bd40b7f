import { bytes, channelOf, characters, KiB, MiB, milliseconds, partOfHeap, times } from './channel.ts';

/** Bounds for what the API of a model sends. */
const channel = channelOf('a model');

export const modelAnswers = channel({
  over: 'answers of its API, which pass the gateway to the harness',
  bytes: {
    waiting: bytes(128 * KiB, 'of an answer, waiting to be passed on; above it the connection is not read'),
    // Brotli's largest window. An answer compressed by zstd with a larger window is not read.
    decoderWindow: bytes(16 * MiB, "a decoder's window"),
    judgedError: bytes(256 * KiB, "an error's body that is read before it is passed on"),
    recorded: bytes(64 * MiB, 'an answer in the record'),
    // A larger answer is passed on, but not read.
    metered: bytes(16 * MiB, 'an answer in one piece that is read for its usage'),
    event: characters(32 * MiB, 'an event of a stream that is read for its usage'),
    // An event is text in the heap.
    eventOfHeap: partOfHeap(1 / 32, 'the same, with a small heap'),
    // Some wires repeat a part when it ends, or carry the arguments of a tool call only in one piece.
    translated: bytes(16 * MiB, 'of an answer, kept whole because the wire of its client needs it whole'),
    callId: characters(500, 'an id that a translated stream has; a longer one is cut'),
    errorMessage: characters(500, 'the message of an error, as it is kept and shown'),
    compared: characters(2 ** 16, 'arguments of a tool call that are compared with later pieces'),
    blanks: bytes(1_000, 'blanks before an answer; what follows more of them is not recognized'),
    optionValue: characters(60, 'the value of an option that is remembered as refused'),
  },
  time: {
    connect: milliseconds(30_000, 'until a connection is open'),
    // A server that was started just before the trials listens by then.
    start: milliseconds(20_000, 'until a server on this machine listens that has not listened before'),
    retryWait: milliseconds(20_000, 'between two attempts'),
    // If a model asks for a longer wait, its client gets the error at once.
    retryAfter: milliseconds(120_000, 'that a model may ask to wait before the next attempt'),
    checkWait: milliseconds(60_000, 'that a model may ask `models check` to wait'),
  },
  count: {
    tries: times(5, 'attempts of a request before its client gets the error'),
    fits: times(10, 'attempts of a request until it has only options that its server takes'),
    // By then, a limit that adapts has long been at 1.
    refusals: times(
      100,
      'further attempts of a request, if the model refuses it because of a limit that adapts',
    ),
    calls: times(1_000, 'tool calls of an answer that is translated'),
    // A service refuses reports whose sums are beyond measure.
    tokens: times(1e9, 'tokens of an answer; a larger number counts as unknown'),
    eventLines: times(
      10_000,
      'lines of an event of a stream; a longer one is as one with too many characters',
    ),
  },
});

export const chatAnswers = channel({
  over: 'answers to this process itself: of judges and of simulated users',
  // More than any answer in one piece; a body without end must not fill the memory.
  bytes: { answer: bytes(16 * MiB, 'an answer') },
  time: { answer: milliseconds(300_000, 'for an answer, with the wait for a place at the model') },
  count: 'one answer to each question of Offsite',
});

export const serverFacts = channel({
  over: 'what a server reports about itself, its models and its routes to `models add` and `models check`',
  bytes: {
    answer: bytes(4 * MiB, 'an answer'),
    name: characters(256, 'the name of a model; longer ones are left out'),
    quoted: characters(200, 'of an answer, in a message'),
  },
  time: { answer: milliseconds(10_000, 'for an answer'), nearby: milliseconds(2_000, 'on this machine') },
  count: {
    models: times(2_000, 'models of a server'),
    offered: times(20, 'models of a server that `init` offers'),
    ports: times(32, 'ports of this machine'),
    refusedOptions: times(100, 'options that a model does not accept, remembered for each of its wires'),
    answers: times(4, 'answers of a model until its calls of a tool are done'),
  },
});
