import { hash } from 'node:crypto';
import type { Wire } from '../../suite/model-config.ts';
import { isObject, type JsonObject, member, objectsOf } from '../wires/lenient.ts';

/**
 * Forms of a conversation that some servers refuse, mostly because of their chat templates. A request without
 * one says the same in another form.
 */
interface ConversationForm {
  /** Its rule, as `without` has it. */
  name: string;
  /** Where a server may say that it is. */
  path?: string;
  /** Members by which a server may call it. */
  aliases?: readonly string[];
  /** How servers say that they do not take it. */
  refusal: RegExp;
  /** Whether nothing is lost without it. */
  meansSame?: true;
  /** Forms to leave out one after another, if the words of a server may mean each of them. */
  orAlso?: readonly string[];
  /** Changes a request to one without it. */
  change(json: JsonObject, wire: Wire): void;
}

/** In the order in which they are changed: one may make another necessary. */
const forms: readonly ConversationForm[] = [
  {
    name: 'images',
    refusal: /\bimages?\b|image_url|input_image|\bvision\b|\bmulti-?modal/i,
    change: (json) => withoutImages(json.messages ?? json.input),
  },
  {
    name: 'role=tool',
    path: 'messages[].role',
    refusal:
      /\b(last|final)\b.{0,40}\buser\b|\b(role|tag|variant)s?\b.{0,20}\btool\b|only user and assistant|unexpected message role/i,
    change(json, wire) {
      if (wire !== 'openai-chat') return;
      for (const turn of turnsIn(json)) {
        if (turn.role !== 'tool') continue;
        const content = joined(`From the tool call ${String(turn.tool_call_id)}:`, turn.content, '\n');
        for (const name of Object.keys(turn)) delete turn[name];
        Object.assign(turn, { role: 'user', content });
      }
    },
  },
  {
    name: 'role=system',
    path: 'messages[].role',
    refusal:
      /\bsystem\b.{0,40}(\bnot\b|n't\b|\bun|\binvalid\b)|(\bun\w+|\binvalid|\bonly)\b.{0,40}\bsystem\b|only user and assistant/i,
    change(json, wire) {
      if (wire === 'anthropic-messages') return;
      for (const turn of turnsIn(json)) if (isSystem(turn)) turn.role = 'user';
    },
  },
  {
    name: 'late_system',
    refusal:
      /\bsystem\b.{0,40}\b(first|begin\w*|start|once|one|single|multiple)\b|\b(first|one|single|multiple)\b.{0,40}\bsystem\b/i,
    change: (json, wire) => {
      if (wire !== 'anthropic-messages') changeTurns(json, (turns) => withSystemFirst(turns, json));
    },
  },
  {
    name: 'user_after_tool',
    refusal:
      /\buser\b.{0,40}\b(after|follow\w*)\b.{0,40}\btool|\btool\b.{0,60}\bfollowed by\b|\bafter\b.{0,30}\btool\b/i,
    change: (json) => changeTurns(json, withoutUserAfterTool),
  },
  {
    name: 'repeated_role',
    refusal: /\balternat|\bconsecutive\b|\bsubsequent\b|\bin a row\b|\border of (the )?(roles|messages)/i,
    orAlso: ['user_after_tool', 'role=system', 'role=tool'],
    change: (json) => changeTurns(json, withoutRepeatedRole),
  },
  {
    name: 'assistant_last',
    refusal: /\bprefill|\b(last|final|end)\b.{0,60}\b(user|assistant)\b/i,
    change: (json) =>
      changeTurns(json, (turns) =>
        turns.at(-1)?.role === 'assistant' ? [...turns, { role: 'user', content: 'Continue.' }] : turns,
      ),
  },
  {
    name: 'content_list',
    path: 'messages[].content',
    refusal:
      /\bcontents?\b.{0,80}\b(str|string|sequence|list|array)\b|\b(str|string|sequence|list|array)\b.{0,80}\bcontents?\b|concatenate str/i,
    meansSame: true,
    orAlso: ['images'],
    change(json) {
      for (const turn of objectsOf(json.messages)) {
        for (const block of objectsOf(turn.content)) if (isResult(block)) useText(block, 'content');
        useText(turn, 'content');
      }
    },
  },
  {
    name: 'system_list',
    path: 'system',
    refusal: /\bsystem\b.{0,80}\b(str|string|sequence|list|array)\b|concatenate str/i,
    meansSame: true,
    change: (json) => useText(json, 'system'),
  },
  {
    name: 'long_call_ids',
    path: 'messages[].tool_calls[].id',
    aliases: ['tool_call_id', 'call_id', 'tool_use_id'],
    refusal: /\b(call|use)s?[\s_.[\]\d-]*ids?\b/i,
    meansSame: true,
    change: shortenIds,
  },
];

const names: ReadonlySet<string> = new Set(forms.map(({ name }) => name));

/** Changes a request to one without the forms that the rules name. Returns the names of those that it had. */
export function withoutForms(json: JsonObject, wire: Wire, rules: readonly string[]): string[] {
  if (!rules.some((rule) => names.has(rule))) return [];
  let before = JSON.stringify(json);
  return forms.flatMap(({ name, change }) => {
    if (!rules.includes(name)) return [];
    change(json, wire);
    const after = JSON.stringify(json);
    const isChanged = after !== before;
    before = after;
    return isChanged ? [name] : [];
  });
}

/** A form that a request has, with the rules to try, one after another. */
export interface FoundForm extends Omit<ConversationForm, 'change' | 'path' | 'orAlso'> {
  path: string;
  changes: readonly (readonly string[])[];
}

export function formsOf(json: JsonObject, wire: Wire): FoundForm[] {
  const whole = JSON.stringify(json);
  const without = (rules: readonly string[]) => {
    const changed = structuredClone(json);
    withoutForms(changed, wire, rules);
    return JSON.stringify(changed);
  };
  // Those that change least come first.
  return forms.toReversed().flatMap(({ change: _, orAlso = [], ...form }) => {
    const { name, path = name } = form;
    const seen = new Set([whole]);
    const changes = [name, ...orAlso]
      .map((_also, last) => [name, ...orAlso.slice(0, last)])
      .filter((rules) => {
        const changed = without(rules);
        return !seen.has(changed) && seen.add(changed);
      });
    return changes.length === 0 ? [] : [{ ...form, path, changes }];
  });
}

/** Messages, or the items of a Responses request. */
function turnsIn(json: JsonObject): JsonObject[] {
  return objectsOf(json.messages ?? json.input);
}

function changeTurns(json: JsonObject, change: (turns: JsonObject[]) => JsonObject[]): void {
  const name = 'messages' in json ? 'messages' : 'input';
  if (Array.isArray(json[name])) json[name] = change(objectsOf(json[name]));
}

function isSystem({ role }: JsonObject): boolean {
  return role === 'system' || role === 'developer';
}

function isResult({ type }: JsonObject): boolean {
  return type === 'tool_result';
}

const imageTypes: ReadonlySet<unknown> = new Set(['image', 'image_url', 'input_image']);

/** Says in place of each image that there was one. */
function withoutImages(value: unknown): void {
  for (const one of objectsOf(value)) {
    if (imageTypes.has(one.type)) {
      const type = one.type === 'input_image' ? 'input_text' : 'text';
      for (const name of Object.keys(one)) delete one[name];
      Object.assign(one, { type, text: '(an image, which this model cannot see)' });
    }
    for (const name of ['content', 'output']) withoutImages(one[name]);
  }
}

/** One system text at the beginning; what comes later is the user's. */
function withSystemFirst(turns: readonly JsonObject[], json: JsonObject): JsonObject[] {
  const first = turns.findIndex((turn) => !isSystem(turn));
  const begun = turns.slice(0, first === -1 ? turns.length : first);
  const rest = turns.slice(begun.length);
  for (const turn of rest) if (isSystem(turn)) turn.role = 'user';
  if (typeof json.instructions === 'string') {
    const said = begun.flatMap(({ content }) => textOf(content) ?? []);
    if (said.length < begun.length) return [...begun, ...rest];
    json.instructions = [json.instructions, ...said].join('\n\n');
    return rest;
  }
  const [system, ...more] = begun;
  if (!system) return rest;
  for (const { content } of more) system.content = joined(system.content, content);
  return [system, ...rest];
}

/** Between a tool's result and what the user says, the model has a word. */
function withoutUserAfterTool(turns: readonly JsonObject[]): JsonObject[] {
  return turns.flatMap(resultsApart).flatMap((turn, at, all) => {
    const isAfterResult = turn.role === 'user' && !isToolTurn(turn) && isToolTurn(all[at - 1] ?? {});
    return isAfterResult ? [{ role: 'assistant', content: 'Done.' }, turn] : [turn];
  });
}

/** A user's message of the Messages wire has results first, and then what the user says. */
function resultsApart(turn: JsonObject): JsonObject[] {
  const { true: results = [], false: said = [] } = Object.groupBy(objectsOf(turn.content), (block) =>
    isResult(block) ? 'true' : 'false',
  );
  if (results.length === 0 || said.length === 0) return [turn];
  return [
    { ...turn, content: results },
    { ...turn, content: said },
  ];
}

function isToolTurn(turn: JsonObject): boolean {
  return (
    turn.role === 'tool' || /_call_output$/.test(String(turn.type)) || objectsOf(turn.content).some(isResult)
  );
}

function withoutRepeatedRole(turns: readonly JsonObject[]): JsonObject[] {
  const written: JsonObject[] = [];
  for (const turn of turns) {
    const last = written.at(-1);
    const isRepeated = typeof turn.role === 'string' && turn.role !== 'tool' && last?.role === turn.role;
    if (!isRepeated || !last) {
      written.push(turn);
      continue;
    }
    last.content = joined(last.content, turn.content);
    for (const name of ['tool_calls', 'reasoning_content'])
      if (turn[name] !== undefined) last[name] = joined(last[name], turn[name]);
  }
  return written;
}

/** Two contents as one: a string, or a list of parts. */
function joined(one: unknown, other: unknown, between = '\n\n'): unknown {
  const [first, second] = [one ?? '', other ?? ''];
  if (first === '') return second;
  if (second === '') return first;
  if (typeof first === 'string' && typeof second === 'string') return `${first}${between}${second}`;
  const isInput = [...objectsOf(first), ...objectsOf(second)].some(({ type }) =>
    /^input_/.test(String(type)),
  );
  const parts = (content: unknown) =>
    typeof content === 'string'
      ? [{ type: isInput ? 'input_text' : 'text', text: content }]
      : [content].flat();
  return [...parts(first), ...parts(second)];
}

/** Content as one text; undefined if there is more in it. */
function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  const parts = objectsOf(content);
  const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  return Array.isArray(content) && texts.length === content.length ? texts.join('\n') : undefined;
}

function useText(of: JsonObject, name: string): void {
  if (Array.isArray(of[name])) of[name] = textOf(of[name]) ?? of[name];
}

/** The longest id that all servers take: Mistral's take only ids of this length. */
const idLength = 9;

/** The same id becomes the same nine letters and digits in each request. */
function shortenIds(json: JsonObject): void {
  const places = callIdPlaces(json);
  const shortOf = new Map<string, string>();
  const taken = new Set(places.flatMap(({ id }) => (isShort(id) ? [id] : [])));
  for (const { of, name, id } of places) {
    let short = isShort(id) ? id : shortOf.get(id);
    for (let number = 0; short === undefined; number += 1) {
      const free = shortened(number === 0 ? id : `${id} ${number}`);
      if (!taken.has(free)) short = free;
    }
    taken.add(short);
    shortOf.set(id, short);
    of[name] = short;
  }
}

function isShort(id: string): boolean {
  return id.length === idLength && /^[a-zA-Z\d]+$/.test(id);
}

function shortened(id: string): string {
  const digits = BigInt(`0x${hash('sha256', id).slice(0, 15)}`).toString(36);
  return digits.padStart(idLength, '0').slice(-idLength);
}

function callIdPlaces(json: JsonObject): { of: JsonObject; name: string; id: string }[] {
  const found: { of: JsonObject; name: string; id: string }[] = [];
  const look = (of: unknown, name: string) => {
    const id = member(of, name);
    if (isObject(of) && typeof id === 'string') found.push({ of, name, id });
  };
  for (const turn of turnsIn(json)) {
    for (const call of objectsOf(turn.tool_calls)) look(call, 'id');
    for (const name of ['tool_call_id', 'call_id']) look(turn, name);
    for (const block of objectsOf(turn.content)) {
      if (block.type === 'tool_use') look(block, 'id');
      look(block, 'tool_use_id');
    }
  }
  return found;
}
