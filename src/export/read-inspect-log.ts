import { crc32, inflateRawSync, zstdDecompressSync } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { z } from 'zod';
import { unionOf } from '../base/intervals.ts';
import { messageOf } from '../base/offsite-error.ts';
import { foreignLogs } from '../bounds/anyone.ts';
import type { Usage } from '../contract/report.ts';
import { Cause } from '../record/cause.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import {
  cutText,
  type ForeignLog,
  type ForeignTrial,
  firstEvents,
  foreignDocument,
  foreignTranscript,
  foreignValidation,
  modelAccount,
  textOf,
  timeIn,
  unreadableLog,
  verdictOf,
} from './foreign-log.ts';
import { verdictScorer } from './inspect-transcript.ts';

/** Reads `.eval` logs of inspect_ai, those that {@link inspectForm} wrote among them. */

const Text = z.string().nullish();
const ModelUsage = z.looseObject({
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
  total_tokens: z.number().nullish(),
  input_tokens_cache_read: z.number().nullish(),
  input_tokens_cache_write: z.number().nullish(),
  total_cost: z.number().nullish(),
});
const Usages = z.record(z.string(), ModelUsage).nullish();
const Score = z.looseObject({ value: z.unknown(), explanation: Text });

const Header = z.looseObject({
  eval: z.looseObject({
    created: Text,
    task: z.string(),
    model: z.string(),
    solver: Text,
    metadata: z.looseObject({ offsite: z.looseObject({ variant: z.string() }).nullish() }).nullish(),
  }),
  results: z
    .looseObject({
      headline: z.looseObject({ scorer: Text }).nullish(),
      scores: z.array(z.looseObject({ name: z.string() })).nullish(),
    })
    .nullish(),
});
type Header = z.infer<typeof Header>;

const Event = z.looseObject({ event: z.string(), timestamp: Text, completed: Text });
const Message = z.looseObject({ role: Text, content: z.unknown() });
const Output = z.looseObject({
  choices: z.array(z.looseObject({ message: Message.nullish() })).nullish(),
});
const Sample = z.looseObject({
  id: z.union([z.string(), z.number()]),
  epoch: z.int().positive(),
  input: z.unknown(),
  messages: z.array(Message).nullish(),
  output: Output.nullish(),
  scores: z.record(z.string(), Score).nullish(),
  metadata: z.looseObject({}).nullish(),
  events: z.array(Event).nullish(),
  model_usage: Usages,
  role_usage: Usages,
  started_at: Text,
  completed_at: Text,
  total_time: z.number().nullish(),
  turn_count: z.int().nullish(),
  error: z.looseObject({ message: z.string() }).nullish(),
  sandbox: z.looseObject({ type: Text }).nullish(),
});
type Sample = z.infer<typeof Sample>;

/** Opens logs that belong together. Throws `LOG_UNREADABLE`. */
export async function readInspectLogs(files: readonly string[]): Promise<ForeignLog> {
  const headers: Header[] = [];
  for (const file of files) {
    using zip = await openZip(file);
    headers.push(await headerOf(zip, file));
  }
  const [first] = headers;
  if (!first) throw unreadableLog('the folder', 'it has no .eval log');
  const tasks = [...new Set(headers.map((header) => header.eval.task))];
  if (tasks.length > 1)
    throw unreadableLog(
      'the folder',
      `its logs are of several tasks, which are several suites: ${cutText(tasks.join(', '))}`,
    );
  const starts = headers.flatMap((header) => timeIn(header.eval.created) ?? []);
  return {
    suite: first.eval.task,
    startedAt: starts.reduce((one, other) => Math.min(one, other), starts[0] ?? 0),
    trials: trialsOf(files),
  };
}

async function headerOf(zip: OpenZip, file: string): Promise<Header> {
  // Without a header, its run has not ended.
  const name = ['header.json', '_journal/start.json'].find((each) => zip.names.includes(each));
  if (name === undefined) throw unreadableLog(file, 'it has no header.json, so it is no .eval log');
  return foreignDocument(await zip.read(name), Header, `${file}: ${name}`);
}

async function* trialsOf(files: readonly string[]): AsyncGenerator<ForeignTrial> {
  const taken = new Set<string>();
  for (const file of files) {
    using zip = await openZip(file);
    const header = await headerOf(zip, file);
    const plain = header.eval.metadata?.offsite?.variant ?? variantOf(header);
    const variant = taken.has(plain) ? `${plain} (${taken.size + 1})` : plain;
    taken.add(variant);
    for (const name of zip.names.filter((each) => /^samples\/.+\.json$/.test(each))) {
      const sample = foreignDocument(await zip.read(name), Sample, `${file}: ${name}`);
      yield {
        caseId: String(sample.id),
        variant,
        ordinal: sample.epoch - 1,
        result: resultOf(sample, header),
      };
    }
  }
}

function variantOf({ eval: { solver, model } }: Header): string {
  return solver ? `${solver}:${model}` : model;
}

function resultOf(sample: Sample, header: Header): TrialRecord {
  const { metadata, started_at, completed_at, total_time, output } = sample;
  const events = firstEvents(sample.events ?? []);
  const startedAt = timeIn(started_at) ?? timeIn(header.eval.created) ?? 0;
  const finishedAt = timeIn(completed_at) ?? startedAt + Math.max(0, total_time ?? 0) * 1_000;
  const graded = gradingOf(sample, header);
  const said = textOf(output?.choices?.[0]?.message?.content);
  const version = metadata?.harness_version;
  const calls = events.filter(({ event, role }) => event === 'model' && (role ?? 'agent') === 'agent');
  return {
    version: recordVersion,
    ...graded,
    startedAt,
    finishedAt: Math.max(startedAt, finishedAt),
    phases: [],
    subject: {
      caseName: String(sample.id),
      ordinal: sample.epoch - 1,
      model: header.eval.model,
      harness: header.eval.solver ?? 'inspect',
      image: sample.sandbox?.type ?? 'unknown',
      network: 'unknown',
      prompt: promptOf(sample.input),
    },
    ...transcriptOf(sample, events, startedAt),
    ...(said !== '' && { finalMessage: said }),
    ...(typeof version === 'string' && { harnessVersion: version }),
    ...(sample.turn_count != null && { turns: sample.turn_count }),
    models: modelAccount(
      usedModels(sample, header, calls.length),
      unionOf(
        calls.flatMap(({ timestamp, completed }) => {
          const [from, to] = [timeIn(timestamp), timeIn(completed)];
          return from === undefined || to === undefined ? [] : [{ startedAt: from, finishedAt: to }];
        }),
      ),
    ),
    modelUnmeasured: metadata?.unmeasured === true,
  };
}

/** A score that says neither passed nor failed makes no verdict. */
function gradingOf(
  sample: Sample,
  { results }: Header,
): Pick<TrialRecord, 'verdict' | 'cause' | 'validations' | 'judgments'> {
  const scores = Object.entries(sample.scores ?? {});
  const wanted = results?.headline?.scorer ?? results?.scores?.[0]?.name ?? verdictScorer;
  const deciding = scores.find(([name]) => name === wanted) ?? scores[0];
  const others = scores.filter((one) => one !== deciding);
  const judgments = others.flatMap(
    ([name, { value, explanation }]): NonNullable<TrialRecord['judgments']> => {
      const reason = explanation == null ? {} : { reason: cutText(explanation) };
      if (typeof value === 'number') return [{ name, score: value, ...reason }];
      return typeof value === 'string' ? [{ name, choice: cutText(value), ...reason }] : [];
    },
  );
  const known = Cause.safeParse(sample.metadata?.cause);
  const error = sample.error?.message;
  const verdict = error === undefined && deciding ? verdictOf(deciding[1].value) : undefined;
  if (verdict === undefined || !deciding) {
    const message = error ?? (deciding ? `its score says neither passed nor failed` : 'it has no score');
    const phase = error === undefined ? ('validate' as const) : ('harness' as const);
    const cause = known.success ? known.data : { kind: 'unknown' as const, phase, message: cutText(message) };
    return { verdict: 'void', cause, judgments };
  }
  const [name, { explanation }] = deciding;
  const message = explanation ? cutText(explanation) : undefined;
  const validations = [foreignValidation(name, 0, verdict === 'passed', message)];
  return { verdict, validations, judgments, ...(known.success && { cause: known.data }) };
}

/** Its own events, or its messages, which have no times. */
function transcriptOf(
  { messages }: Sample,
  events: readonly z.infer<typeof Event>[],
  startedAt: number,
): Pick<TrialRecord, 'events' | 'trajectory'> {
  const transcript = foreignTranscript();
  for (const event of events) {
    const at = timeIn(event.timestamp) ?? startedAt;
    const finishedAt = timeIn(event.completed);
    if (event.event === 'tool') {
      const { error: beside } = (event.metadata ?? {}) as { error?: unknown };
      const { message = beside } = (event.error ?? {}) as { message?: unknown };
      const error = message === undefined ? undefined : String(message);
      const [name, output] = [String(event.function ?? 'tool'), textOf(event.result)];
      transcript.call({ name, input: event.arguments, output, at, finishedAt, error });
    } else if (event.event === 'model') {
      const { choices } = Output.safeParse(event.output).data ?? {};
      transcript.say('message', finishedAt ?? at, textOf(choices?.[0]?.message?.content));
    } else if (event.event === 'info' && typeof event.data === 'string') {
      const kinds = { user: 'user', agent: 'message' } as const;
      transcript.say(kinds[event.source as keyof typeof kinds] ?? 'note', at, event.data);
    }
  }
  if (transcript.isEmpty())
    for (const { role, content } of firstEvents(messages ?? [])) {
      const kind = role === 'user' ? 'user' : role === 'assistant' ? 'message' : 'note';
      transcript.say(kind, startedAt, textOf(content));
    }
  return transcript.told();
}

function usedModels(sample: Sample, header: Header, requests: number) {
  const { role_usage: byRole, model_usage: byModel } = sample;
  const { model } = header.eval;
  const roles = ['agent', 'judge', 'user'] as const;
  // A log of Offsite's tells the roles. In others, all that the log's model did is the agent's.
  const own = header.eval.metadata?.offsite != null;
  const used = own
    ? roles.flatMap((role) => (byRole?.[role] ? [{ role, model, usage: byRole[role] }] : []))
    : Object.entries(byModel ?? {}).map(([name, usage]) => {
        return { role: name === model ? ('agent' as const) : ('judge' as const), model: name, usage };
      });
  return used.map(({ usage, ...one }) => ({ ...one, requests, usage: usageIn(usage) }));
}

function usageIn(given: z.infer<typeof ModelUsage>): Usage {
  const { input_tokens, output_tokens, total_tokens, total_cost } = given;
  const { input_tokens_cache_read: read, input_tokens_cache_write: write } = given;
  return {
    inputTokens: input_tokens + (read ?? 0) + (write ?? 0),
    outputTokens: output_tokens,
    totalTokens: total_tokens ?? input_tokens + output_tokens,
    ...(read != null && { cacheReadTokens: read }),
    ...(write != null && { cacheWriteTokens: write }),
    ...(total_cost != null && { costUsd: total_cost }),
  };
}

function promptOf(input: unknown): string {
  if (!Array.isArray(input)) return cutText(textOf(input));
  const last = input.findLast((message) => Message.safeParse(message).data?.role === 'user');
  return cutText(textOf((last as { content?: unknown } | undefined)?.content));
}

/** A zip whose files are read one by one, in any order. */
interface OpenZip extends Disposable {
  /** The names of its files in their order. Of files with the same name, the last one counts. */
  names: readonly string[];
  /** The content of a file. Throws `LOG_UNREADABLE`, also for more bytes than {@link foreignLogs} allows. */
  read(name: string): Promise<Buffer>;
}

/** Opens a zip that somebody else wrote. Nothing of it is written anywhere. Throws `LOG_UNREADABLE`. */
async function openZip(file: string): Promise<OpenZip> {
  // The bundle has only the default export of a CommonJS package.
  const { openPromise } = (await import('yauzl')).default;
  const options = { lazyEntries: true, autoClose: false, validateEntrySizes: false };
  const refuse = (error: unknown) => Promise.reject(unreadableLog(file, messageOf(error), error));
  const zip = await openPromise(file, options).catch(refuse);
  // What is wrong while nothing is read shows when the next file is.
  zip.on('error', () => undefined);
  try {
    if (zip.fileSize > foreignLogs.bytes.file) throw unreadableLog(file, 'it is too large');
    if (zip.entryCount > foreignLogs.count.files) throw unreadableLog(file, 'it has too many files');
    const listed = await Array.fromAsync(zip.eachEntry()).catch(refuse);
    const entries = new Map<string, Entry>();
    for (const entry of listed) {
      entries.delete(entry.fileName);
      entries.set(entry.fileName, entry);
    }
    let unpacked = 0;
    return {
      names: [...entries.keys()],
      async read(name) {
        const entry = entries.get(name);
        if (!entry) throw unreadableLog(file, `it has no file ${name}`);
        unpacked += entry.uncompressedSize;
        if (unpacked > foreignLogs.bytes.unpacked)
          throw unreadableLog(file, 'it is too large when it is decompressed');
        return contentOf(zip, entry, `${file}: ${name}`);
      },
      [Symbol.dispose]: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

/** Of the methods of compression, those that inspect_ai writes: none, deflate, and Zstandard since 2026. */
const unpackers: ReadonlyMap<number, (packed: Buffer, limit: { maxOutputLength: number }) => Buffer> =
  new Map([
    [0, (packed: Buffer) => packed],
    [8, inflateRawSync],
    [93, zstdDecompressSync],
  ]);

async function contentOf(zip: ZipFile, entry: Entry, place: string): Promise<Buffer> {
  const { compressionMethod: method, compressedSize, uncompressedSize } = entry;
  const most = foreignLogs.bytes.document;
  if (compressedSize > most || uncompressedSize > most) throw unreadableLog(place, 'it is too large');
  if (entry.isEncrypted()) throw unreadableLog(place, 'it is encrypted');
  try {
    const stream = await zip.openReadStreamPromise(entry, { decodeFileData: false });
    const packed = Buffer.concat(await Array.fromAsync<Buffer>(stream));
    // The size that the zip claims is the most that is made of it, and must be right.
    const content = unpackers.get(method)?.(packed, { maxOutputLength: Math.max(1, uncompressedSize) });
    if (!content)
      throw new Error(`it is compressed by method ${method}, and Offsite reads deflate and Zstandard`);
    if (content.length !== uncompressedSize || crc32(content) !== entry.crc32)
      throw new Error('its content is not what the zip says of it');
    return content;
  } catch (error) {
    throw unreadableLog(place, messageOf(error), error);
  }
}
