import { modelAnswers } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { UpstreamRequest } from '../answer.ts';
import { memberNames, membersOf } from '../members.ts';
import { isObject, type JsonObject, parsed, words } from '../wires/lenient.ts';
import { hostedMembers } from '../wires/wire-table.ts';
import { formsOf, withoutForms } from './conversation-forms.ts';

/**
 * The options of a request: the members that may be left out, because the rest still asks for the same. They
 * are everything on the first level but what {@link essential} names, and the {@link annotations} of messages
 * and tools. A rule names an option: by its path without indexes (`tools[].function.strict`), by the last
 * name of that path (`strict`), or with a value (`reasoning_effort=minimal`). `max_tokens<=8000` lowers a
 * limit that its wire requires.
 */
export interface RequestOption {
  path: string;
  /** The last name of the path. */
  name: string;
  /** Other names by which a server may call it. */
  aliases: readonly string[];
  /** Its value, if that is short, as a rule has it. */
  value: string | undefined;
  /** The rules that change it, one after another: first its other name or value, then without it. */
  changes: readonly (readonly string[])[];
  /** Set for a form of the conversation: how servers say that they do not take it. */
  refusal?: RegExp;
  /** Whether a request without it asks for all that was asked for. */
  meansSame?: boolean;
}

/**
 * What a request means: the conversation, the tools and the choice among them, the form of the answer, where
 * it ends, and what runs at the provider. Leaving one out would ask for something else.
 */
const essential: ReadonlySet<string> = new Set([
  ...words(`
    model messages input contents system instructions systemInstruction tools tool_choice toolConfig
    functions function_call stream background n candidateCount stop stop_sequences stopSequences
    previous_response_id response_format responseMimeType responseSchema responseJsonSchema
    responseModalities format modalities audio grammar json_schema guided_json guided_regex guided_choice
    guided_grammar structured_outputs`),
  ...hostedMembers,
]);

/** The same for a sender that checks the form of the answer itself. */
const essentialToChecker = essential.difference(
  words('response_format format responseMimeType responseSchema responseJsonSchema tool_choice'),
);

/** What clients and the translation add to messages and tools without which they still say the same. */
const annotations = words(`
  strict cache_control reasoning_content reasoning reasoning_details annotations defer_loading
  eager_input_streaming input_examples allowed_callers detail status phase`);

/** Members that hold both options and essential members. */
const holders = words('text output_config generationConfig');

/** Members whose inside belongs to a tool, a schema or the client. */
const closed = words(`
  parameters input_schema parametersJsonSchema schema arguments args response metadata client_metadata
  logit_bias chat_template_kwargs labels source`);

/** The limit of an answer has two names in OpenAI's API, and servers know one of them or both. */
const otherNames: Readonly<Record<string, string>> = {
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
};
/** The role in place of one that a server may lack. Claude Code says some of its own words as the system. */
function otherRole(role: unknown, wire: Wire): string | undefined {
  if (role === 'developer') return 'system';
  return role === 'system' && wire === 'anthropic-messages' ? 'user' : undefined;
}

/** Whether a rule would leave out what a request means. */
export function isEssential(rule: string): boolean {
  const [path = ''] = rule.split('=');
  return essential.has(path.split('.').at(-1) ?? '');
}

/** Essential members with the value that a request without them has too. */
const defaults: Readonly<Record<string, unknown>> = { tool_choice: 'auto', n: 1, candidateCount: 1 };

/** Fewer tokens are too few for an answer of a harness. */
const leastTokens = 1_000;

/** A place in a request: an object, and a member of it. */
interface Place {
  of: JsonObject;
  name: string;
  path: string;
  /** The member of the first level that it is in. */
  top: string;
  /** Set for a limit that the wire requires: it can only be lower. */
  isLimit?: boolean;
}

/** A request, as its options are read. */
export type Asked = Pick<UpstreamRequest, 'wire' | 'body' | 'checksForm'>;

/** The options that a request has, each path once. */
export function optionsOf(asked: Asked): RequestOption[] {
  const json = parsed(asked.body.toString('utf8'));
  if (!isObject(json)) return [];
  const found = new Map<string, RequestOption>();
  for (const place of placesIn(json, asked)) {
    const { path, name, of } = place;
    const key = name === 'role' ? `${path}=${String(of[name])}` : path;
    if (!found.has(key))
      found.set(key, { path, name, value: shortValue(path, of[name]), ...changesOf(place, of[name]) });
  }
  const formed = formsOf(json, asked.wire).map((form) => ({ aliases: [], value: undefined, ...form }));
  return [...found.values(), ...formed];
}

/** The value as a rule has it: a string as it is, anything else as JSON. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function shortValue(path: string, value: unknown): string | undefined {
  const text = textOf(value);
  return text.length > modelAnswers.bytes.optionValue || path.includes('[]') ? undefined : text;
}

function changesOf(
  { path, name, of, isLimit }: Place,
  value: unknown,
): Pick<RequestOption, 'aliases' | 'changes' | 'meansSame'> {
  if (isLimit) {
    const lower = [2, 4, 8, 16, 32].map((part) => Math.floor(Number(value) / part));
    return {
      aliases: [],
      changes: lower.filter((limit) => limit >= leastTokens).map((limit) => [`${path}<=${limit}`]),
      meansSame: true,
    };
  }
  if (name in defaults) return { aliases: [], changes: [[`${path}=${textOf(value)}`]] };
  if (name === 'role') {
    const rule = `${path}=${String(value)}`;
    return { aliases: [String(value)], changes: [[rule]] };
  }
  const other = otherNames[name];
  if (other !== undefined && !path.includes('.')) {
    const both = [name, other];
    const changes = other in of ? [[name]] : [[name], both];
    return { aliases: [other], changes, meansSame: changes.length > 1 };
  }
  return { aliases: [], changes: [[path]] };
}

function* placesIn(json: JsonObject, { wire, checksForm }: Asked): Generator<Place> {
  const essentials = checksForm ? essentialToChecker : essential;
  for (const [top, value] of Object.entries(json)) {
    if (value === null || value === undefined) continue;
    const isLimit = wire === 'anthropic-messages' && top === 'max_tokens';
    const isOption = !essentials.has(top) || (top in defaults && defaults[top] === value);
    if (isOption && !holds(essentials, top, value)) yield { of: json, name: top, path: top, top, isLimit };
    if (closed.has(top)) continue;
    yield* inside(value, { path: top, top, essentials, isMeant: essentials.has(top), wire });
  }
}

function holds(essentials: ReadonlySet<string>, name: string, value: unknown): boolean {
  return (
    holders.has(name) &&
    isObject(value) &&
    Object.entries(value).some(([inner, one]) => essentials.has(inner) && one !== null)
  );
}

/** @param where.isMeant whether this is part of the conversation or the tools, which have only annotations */
function* inside(
  value: unknown,
  where: { path: string; top: string; essentials: ReadonlySet<string>; isMeant: boolean; wire: Wire },
): Generator<Place> {
  const { path, top, essentials, isMeant, wire } = where;
  if (Array.isArray(value)) {
    for (const one of value) yield* inside(one, { ...where, path: `${path}[]` });
    return;
  }
  if (!isObject(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    const at = `${path}.${name}`;
    const place = { of: value, name, path: at, top };
    const isRole = isMeant && name === 'role' && otherRole(inner, wire) !== undefined;
    if (isMeant ? annotations.has(name) || isRole : !essentials.has(name)) yield place;
    if (!closed.has(name) && !annotations.has(name))
      yield* inside(inner, { ...where, path: at, isMeant: isMeant || essentials.has(name) });
  }
}

export interface Fitted {
  body: Buffer;
  /** The paths that were left out. Another name or role for the same is no loss. */
  leftOut: string[];
}

/** A request without the options that the rules name. The bytes of all other members stay as they are. */
export function withoutOptions(asked: Asked, rules: readonly string[]): Fitted {
  const { body, wire } = asked;
  const json = rules.length === 0 ? undefined : parsed(body.toString('utf8'));
  if (!isObject(json)) return { body, leftOut: [] };
  const changed = new Set<string>();
  const renamed = new Map<string, string>();
  const leftOut = new Set<string>();
  const isOut = (path: string, name: string, value: unknown) =>
    rules.some((rule) => isNamed(rule, path, name, value));
  // The places are collected first, since changing an object would confuse the walk through it.
  for (const { of, name, path, top, isLimit } of [...placesIn(json, asked)]) {
    if (isLimit) {
      const limit = rules.findLast((rule) => rule.startsWith(`${path}<=`))?.slice(path.length + 2);
      if (limit === undefined || !(Number(of[name]) > Number(limit))) continue;
      of[name] = Number(limit);
      changed.add(top);
      leftOut.add(`${path}<=${limit}`);
      continue;
    }
    if (!isOut(path, name, of[name])) continue;
    changed.add(top);
    const other = otherNames[name];
    if (name === 'role') {
      // What the user says has less weight.
      if (of[name] === 'system') leftOut.add(`${path}=system`);
      of[name] = otherRole(of[name], wire);
    } else if (path === top && other !== undefined && !(other in json) && !isOut(other, other, of[name]))
      renamed.set(name, other);
    else {
      // The default is asked for without its name.
      if (!(name in defaults && defaults[name] === of[name])) leftOut.add(path);
      delete of[name];
    }
  }
  const forms = withoutForms(json, wire, rules);
  for (const form of forms) leftOut.add(form);
  if (forms.length > 0) for (const name of ['messages', 'input', 'instructions', 'system']) changed.add(name);
  if (changed.size === 0) return { body, leftOut: [] };
  const written = membersOf(body, memberNames(wire)).flatMap(({ name, start, end }) => {
    if (!(name in json)) return [];
    const value = changed.has(name) ? withoutEmpty(json[name]) : body.toString('utf8', start, end);
    return value === undefined ? [] : `${JSON.stringify(renamed.get(name) ?? name)}:${value}`;
  });
  return { body: Buffer.from(`{${written.join(',')}}`), leftOut: [...leftOut] };
}

/** JSON of a changed member; undefined if nothing is left in it. */
function withoutEmpty(value: unknown): string | undefined {
  return isObject(value) && Object.keys(value).length === 0 ? undefined : JSON.stringify(value);
}

function isNamed(rule: string, path: string, name: string, value: unknown): boolean {
  const at = rule.indexOf('=');
  const named = at === -1 ? rule : rule.slice(0, at);
  if (named !== path && named !== name) return false;
  return at === -1 ? name !== 'role' : rule.slice(at + 1) === textOf(value);
}
