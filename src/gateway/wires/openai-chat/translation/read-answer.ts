import { eventReader } from '../../../translation/event-objects.ts';
import { incomplete, isDone, NoAnswer, stopOf, wordsOfOther } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isNothing, isObject, type JsonObject, member, objectsOf, parsed } from '../../lenient.ts';
import { usageOf } from '../../openai.ts';
import { stringIn } from '../../read-values.ts';
import { failureIn } from '../failure.ts';
import { stops } from '../stops.ts';
import { callsOf } from './read-calls.ts';
import { readContent, thoughtIn, thoughtNames } from './read-content.ts';

const known = new Set([...words('role content refusal tool_calls toolCalls function_call'), ...thoughtNames]);

/** What a chunk may have beside its choices without saying anything. */
const heads = words(
  'id object created model choices usage system_fingerprint service_tier provider type finish_reason',
);

const callNames = /^tool_?calls$/i;

/** Members that say the same under another name. */
function kindOf(name: string): string {
  if (thoughtNames.includes(name)) return 'thoughts';
  return name === 'function_call' || callNames.test(name) ? 'tool_calls' : name;
}

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export const read: WireTranslation['read'] = (steps, losses) => {
  const called = callsOf(steps);
  let reason: unknown;
  const said = new Set<string>();
  let whole: JsonObject | undefined;
  /** Of another choice, until the first one is seen. Clients read one choice, whoever asked for more. */
  let others: JsonObject[] | undefined = [];
  /** The words of a chunk that has neither choices nor usage. */
  let odd: string | undefined;

  const say = (message: JsonObject, isWhole: boolean) => {
    const thought = thoughtIn(message);
    steps.text('reasoning', thought);
    readContent(message.content, { steps, losses, called });
    steps.text('refusal', stringIn(message, 'refusal') ?? '');
    const given = message.tool_calls ?? message.toolCalls;
    const calls = objectsOf([typeof given === 'string' ? parsed(given) : given].flat());
    // In a whole message each piece is a call, whatever its number.
    for (const [index, piece] of calls.entries()) called(isWhole ? { ...piece, index } : piece);
    // The form of calls before there were several.
    if (calls.length === 0 && isObject(message.function_call)) called({ function: message.function_call });
    for (const [name, value] of Object.entries(message)) {
      if (value === '' || isNothing(value) || name === 'role') continue;
      said.add(kindOf(name));
      // Thoughts that are no text are encrypted ones.
      const isUnread =
        (thought === '' && thoughtNames.includes(name)) || (callNames.test(name) && calls.length === 0);
      if (!known.has(name) || isUnread) losses.record(`answer.${name.slice(0, 100)}`, 'answer detail');
    }
  };

  const take = (chunk: JsonObject) => {
    const failure = failureIn(chunk);
    if (failure) return steps.failure(failure);
    steps.start(stringIn(chunk, 'id'), stringIn(chunk, 'model'));
    const counted = usageIn(chunk);
    if (counted) steps.counts(usageOf(counted));
    const choices = objectsOf([chunk.choices].flat());
    if (choices.length === 0 && !counted) odd ??= wordsOfOther(chunk, heads);
    for (const choice of choices) {
      if ((Number(choice.index) || 0) === 0) {
        if (others?.length) losses.record('answer.choices', 'answer detail');
        others = undefined;
        readChoice(choice);
      } else if (!others || (others[0] && others[0].index !== choice.index))
        losses.record('answer.choices', 'answer detail');
      else others.push(structuredClone(choice));
    }
  };
  const readChoice = (choice: JsonObject) => {
    if (choice.logprobs != null) losses.record('answer.logprobs', 'answer detail');
    if (isObject(choice.message)) whole = choice.message;
    if (isObject(choice.delta)) say(choice.delta, false);
    else if (typeof (choice.delta ?? choice.text) === 'string')
      say({ content: choice.delta ?? choice.text }, false);
    // Some servers have calls beside the delta.
    if (choice.tool_calls !== undefined) say({ tool_calls: choice.tool_calls }, false);
    reason = choice.finish_reason || reason;
  };

  /** @param isTold whether the server said that the answer is complete */
  const end = (isTold: boolean) => {
    if (steps.over) return;
    for (const choice of others ?? []) readChoice(choice);
    // Some servers repeat the whole message at the end, or in each chunk what they have of it.
    const unsaid = Object.entries(whole ?? {}).filter(([name]) => !said.has(kindOf(name)));
    say(Object.fromEntries(unsaid), true);
    if (reason === undefined && (odd !== undefined || !(isTold && said.size > 0))) throw incomplete(odd);
    steps.end(stopOf(stops, reason, losses, 'answer.finish_reason'));
  };

  const readEvent = eventReader(steps, losses, take);
  return {
    event(data) {
      if (steps.over || data.trim() === '') return;
      if (isDone(data)) return end(true);
      readEvent(data);
    },
    // Not every server ends with [DONE].
    end: () => end(false),
    document(body) {
      const { choices, ...rest } = isObject(body) ? body : {};
      const [first, ...more] = objectsOf([choices].flat());
      if (!isObject(body) || (!first && !failureIn(body))) throw new NoAnswer('openai-chat');
      if (more.length > 0) losses.record('answer.choices', 'answer detail');
      take(first ? { ...rest, choices: [first] } : body);
      end(true);
    },
  };
};

/** The usage of a chunk: beside its choices, in one of them, or where Groq puts it. */
function usageIn(chunk: JsonObject): JsonObject | undefined {
  const inChoices = objectsOf(chunk.choices).map((choice) => choice.usage);
  return [chunk.usage, ...inChoices, member(chunk.x_groq, 'usage')].find(isObject);
}
