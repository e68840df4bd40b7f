import { hash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../../base/canonical-json.ts';
import type { Content, NeutralMessage, NeutralRequest } from '../translation/neutral-request.ts';
import { parsed } from '../wires/lenient.ts';

/**
 * A request to a model without what varies between wires and runs and has no meaning: ids of calls, marks for
 * caches, limits, metadata, and the order of tools. This is what a cassette stores of a request.
 */

/** What the model got before its next answer. Results are in the order of their calls. */
const InputTurn = z.object({
  by: z.literal('user'),
  said: z.string(),
  /** Hashes of images and documents, in order. */
  media: z.array(z.string()),
  results: z.array(z.string()),
});

const ModelTurn = z.object({
  by: z.literal('model'),
  text: z.string(),
  /** `arguments`: JSON with sorted members. */
  calls: z.array(z.object({ name: z.string(), arguments: z.string() })),
});

export const CanonicalTurn = z.discriminatedUnion('by', [InputTurn, ModelTurn]);
export type CanonicalTurn = z.infer<typeof CanonicalTurn>;

export const CanonicalRequest = z.object({
  /** What the harness says beside the conversation: system texts, and texts within a tag. */
  context: z.array(z.string()),
  turns: z.array(CanonicalTurn),
  /** Sorted by name. `definition`: JSON of description and parameters. */
  tools: z.array(z.object({ name: z.string(), definition: z.string() })),
  /** JSON of what asks for another kind of answer: sampling, the choice of tools, a format. */
  options: z.string(),
});
export type CanonicalRequest = z.infer<typeof CanonicalRequest>;

type Unnamed = Omit<NeutralRequest, 'model' | 'streamed'>;

export function canonicalRequest(request: Unnamed): CanonicalRequest {
  const { context, turns } = conversationOf(request.messages);
  const tools = request.tools.map(({ name, description, parameters }) => ({
    name,
    definition: canonicalJson({ description, parameters }),
  }));
  const { toolChoice, temperature, topP, topK, seed, presencePenalty, frequencyPenalty } = request;
  const { stop, reasoning, format } = request;
  const sampling = { temperature, topP, topK, seed, presencePenalty, frequencyPenalty };
  return {
    context,
    turns,
    tools: tools.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)),
    options: canonicalJson({
      ...sampling,
      reasoning,
      // `auto` and an empty list are the defaults: a request that leaves them out means the same.
      ...(toolChoice !== 'auto' && { toolChoice }),
      ...(stop.length > 0 && { stop }),
      ...(format && { format: format.schema ?? true }),
    }),
  };
}

function conversationOf(messages: readonly NeutralMessage[]) {
  const context: string[] = [];
  const turns: CanonicalTurn[] = [];
  /** The position of each call in its turn. */
  const positions = new Map<string, number>();
  let results: { position: number; text: string }[] = [];
  const input = () => {
    const last = turns.at(-1);
    if (last?.by === 'user') return last;
    const begun = { by: 'user' as const, said: '', media: [], results: [] };
    turns.push(begun);
    return begun;
  };
  const say = (part: Content, into: Extract<CanonicalTurn, { by: 'user' }>) => {
    if (part.type !== 'text') into.media.push(mediaHash(part));
    else if (isContext(part.text)) context.push(part.text.trim());
    else into.said = joined(into.said, part.text);
  };
  for (const message of messages) {
    switch (message.from) {
      case 'system':
        if (message.text.trim() !== '') context.push(message.text.trim());
        break;
      case 'user': {
        const into = input();
        for (const part of message.parts) say(part, into);
        break;
      }
      case 'tool': {
        const into = input();
        for (const part of message.parts) if (part.type !== 'text') into.media.push(mediaHash(part));
        const position = positions.get(message.callId) ?? Number.POSITIVE_INFINITY;
        results.push({ position, text: textOf(message.parts) });
        into.results = results.toSorted((a, b) => a.position - b.position).map(({ text }) => text);
        break;
      }
      case 'model': {
        const text = message.parts.map((part) =>
          'text' in part && part.type !== 'reasoning' ? part.text : '',
        );
        const calls = message.parts.filter((part) => part.type === 'call');
        if (calls.length === 0 && text.join('').trim() === '') break;
        dropEmpty(turns);
        const last = turns.at(-1);
        const into = last?.by === 'model' ? last : { by: 'model' as const, text: '', calls: [] };
        if (into !== last) {
          turns.push(into);
          results = [];
        }
        into.text = joined(into.text, text.join(''));
        for (const call of calls) {
          positions.set(call.id, into.calls.length);
          into.calls.push({ name: call.name, arguments: canonicalArguments(call.arguments) });
        }
      }
    }
  }
  dropEmpty(turns);
  return { context, turns };
}

/** A message of nothing but context leaves a turn without content. */
function dropEmpty(turns: CanonicalTurn[]): void {
  const last = turns.at(-1);
  if (last?.by === 'user' && last.said === '' && last.media.length + last.results.length === 0) turns.pop();
}

/**
 * Texts that a harness adds in the user's name stand within one tag: `<system-reminder>…</system-reminder>`.
 */
function isContext(text: string): boolean {
  const [, tag] = /^\s*<([a-z][\w:-]{2,60})(?:\s[^<>]{0,200})?>/i.exec(text) ?? [];
  return tag !== undefined && text.trimEnd().endsWith(`</${tag}>`);
}

/** Wires join texts in different ways, and harnesses trim them. */
function joined(before: string, text: string): string {
  const more = text.trim();
  return before === '' ? more : more === '' ? before : `${before}\n${more}`;
}

function textOf(parts: readonly Content[]): string {
  return parts
    .flatMap((part) => (part.type === 'text' ? [part.text.trim()] : []))
    .filter((text) => text !== '')
    .join('\n');
}

function mediaHash(part: Exclude<Content, { type: 'text' }>): string {
  const content = 'data' in part ? part.data : part.url;
  return `${part.type} ${hash('sha256', content).slice(0, 32)}`;
}

/** Arguments that are not JSON stay as the model wrote them. */
function canonicalArguments(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : canonicalJson(value);
}

/**
 * Shapes of text that differ between two runs of the same thing: two texts that differ only in these count as
 * equal. docs/reference/replay.md lists them. They are looked for in what harnesses and tools say, never in
 * what a person or a model said.
 */

const months =
  'Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|' +
  'Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?';
const days = '(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?';

/** In this order: a date with its time before a time, an id of several groups before its groups. */
const shapes: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<uuid>'],
  [
    /\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2})\b)?/g,
    '<date>',
  ],
  // As `ls -l` and `date` write them, too.
  [
    new RegExp(
      `\\b(?:${days},? )?(?:${months}) {1,2}\\d{1,2}(?:,? {1,2}\\d{4}| {1,2}\\d{2}:\\d{2})?\\b`,
      'g',
    ),
    '<date>',
  ],
  [new RegExp(`\\b(?:${days},? )?\\d{1,2} (?:${months})(?:,? \\d{4})?\\b`, 'g'), '<date>'],
  [new RegExp(`\\b(?:${months}) \\d{4}\\b`, 'g'), '<date>'],
  [/\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b/g, '<time>'],
  [/<date>(?:,? <time>)?(?: (?:UTC|GMT|[A-Z]{3,4}))?(?: \d{4})?/g, '<date>'],
  [/\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b/g, '<duration>'],
  // `duration_ms 507.37`, `"duration": 0.5`, `time="0.001"`, as reports of tests have them.
  [
    /\b(?:\w{0,40}(?:duration|elapsed|latency|took)\w{0,40}["']?(?: ?[:=] ?| )|\w{0,40}time["']?(?: ?[:=] ?))["']?\d{1,15}(?:\.\d{1,15})?\b["']?/gi,
    '<duration>',
  ],
  // Seconds, milliseconds or nanoseconds since 1970, in this decade or the next.
  [/\b[12]\d{9}(?:\d{3}|\d{9})?(?:\.\d{1,9})?\b/g, '<epoch>'],
  [/\b0x[0-9a-f]{6,16}\b/gi, '<address>'],
  [/\b(?:chunk|session|thread|request|process|shell|trace)[ _-]?id["']?[:=] ?["']?[\w-]{1,64}/gi, '<id>'],
  [/\bp[gp]?ids?["']?(?: ?[:=] ?| )\d{1,8}\b/gi, '<pid>'],
  [/\b(?:toolu|call|msg|resp|chatcmpl|ses|req|item|fc|rs)[_-][\w-]{6,80}/g, '<id>'],
  [/(?:\/private)?(?:\/var)?\/tmp\/[^\s"'`<>()[\]{},;:]+/g, '<temporary path>'],
  [/\b(localhost|127\.0\.0\.1|\[::1\]):\d{2,5}\b/g, '$1:<port>'],
  // Hashes of commits and names of containers: hexadecimal words with at least one digit and one letter.
  [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b/g, '<hash>'],
];

/** The text with each volatile shape replaced by its name. */
export function withoutVolatile(text: string): string {
  return shapes.reduce((result, [shape, name]) => result.replace(shape, name), text);
}
