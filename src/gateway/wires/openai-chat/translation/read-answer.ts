import { eventReader } from '../../../translation/event-objects.ts';
import { incomplete, isDone, NoAnswer, stopOf } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isNothing, isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { usageOf } from '../../openai.ts';
import { stringIn } from '../../read-values.ts';
import { failureIn } from '../failure.ts';
import { stops } from '../stops.ts';
import { callsOf } from './read-calls.ts';
import { readContent, thoughtIn, thoughtNames } from './read-content.ts';

const known = new Set([...words('role content refusal tool_calls function_call'), ...thoughtNames]);

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export const read: WireTranslation['read'] = (steps, losses) => {
  const called = callsOf(steps);
  let first: unknown;
  let reason: unknown;
  let hasContent = false;
  let whole: JsonObject | undefined;

  const say = (message: JsonObject, isWhole: boolean) => {
    const thought = thoughtIn(message);
    steps.text('reasoning', thought);
    readContent(message.content, { steps, losses, called });
    steps.text('refusal', stringIn(message, 'refusal') ?? '');
    const calls = objectsOf([message.tool_calls].flat());
    // In a whole message each piece is a call, whatever its number.
    for (const [index, piece] of calls.entries()) called(isWhole ? { ...piece, index } : piece);
    // The form of calls before there were several.
    if (calls.length === 0 && isObject(message.function_call)) called({ function: message.function_call });
    for (const [name, value] of Object.entries(message)) {
      if (value === '' || isNothing(value) || name === 'role') continue;
      hasContent = true;
      // Thoughts that are no text are encrypted ones.
      if (!known.has(name) || (thought === '' && thoughtNames.includes(name)))
        losses.record(`answer.${name.slice(0, 100)}`, 'answer detail');
    }
  };

  const take = (chunk: JsonObject) => {
    const failure = failureIn(chunk);
    if (failure) return steps.failure(failure);
    steps.start(stringIn(chunk, 'id'), stringIn(chunk, 'model'));
    const counted = usageIn(chunk);
    if (counted) steps.counts(usageOf(counted));
    for (const choice of objectsOf([chunk.choices].flat())) {
      const index = Number(choice.index ?? 0);
      first ??= index;
      // Clients read one choice, whoever asked for more.
      if (index !== first) {
        losses.record('answer.choices', 'answer detail');
        continue;
      }
      if (choice.logprobs != null) losses.record('answer.logprobs', 'answer detail');
      if (isObject(choice.message)) whole = choice.message;
      if (isObject(choice.delta)) say(choice.delta, false);
      else if (typeof (choice.delta ?? choice.text) === 'string')
        say({ content: choice.delta ?? choice.text }, false);
      reason = choice.finish_reason || reason;
    }
  };

  /** @param isTold whether the server said that the answer is complete */
  const end = (isTold: boolean) => {
    if (steps.over) return;
    // Some servers repeat the whole message at the end, or in each chunk what they have of it.
    if (!hasContent && whole) say(whole, true);
    if (reason === undefined && !(isTold && hasContent)) throw incomplete();
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
      if (!isObject(body) || (objectsOf([body.choices].flat()).length === 0 && !failureIn(body)))
        throw new NoAnswer('openai-chat');
      take(body);
      end(true);
    },
  };
};

/** The usage of a chunk: beside its choices, in one of them, or where Groq puts it. */
function usageIn(chunk: JsonObject): JsonObject | undefined {
  const inChoices = objectsOf(chunk.choices).map((choice) => choice.usage);
  return [chunk.usage, ...inChoices, member(chunk.x_groq, 'usage')].find(isObject);
}
