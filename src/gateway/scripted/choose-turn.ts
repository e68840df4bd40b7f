import type { ScriptFile, ScriptTurn, TextMatch, When } from '../../suite/script-file.ts';
import type { Conversation, Message } from './conversation.ts';
import { endingCommand } from './shell-tool.ts';

/**
 * The turn that answers a request; undefined if none fits, and then `otherwise` answers.
 *
 * Keeps no state between requests, so retries, parallel trials and side questions cannot confuse a script:
 * harnesses send the whole conversation each time, and the script's earlier answers in it show which turns
 * are used. Each turn answers once (unless it repeats): the first unused one whose `when` holds.
 */
export function chooseTurn(script: ScriptFile, conversation: Conversation): ScriptTurn | undefined {
  const used = new Set<ScriptTurn>();
  const endingCalls = endingCommand(conversation) === undefined ? 0 : 1;
  let answers = 0;
  for (const [index, message] of conversation.messages.entries()) {
    if (message.from !== 'model') continue;
    const before = conversation.messages.slice(0, index);
    const answered = fitting(script, conversation, before, answers + 1, used).find((turn) =>
      saidBy(turn, message, endingCalls),
    );
    // A message that matches no turn came from the harness (some begin with a greeting) or from `otherwise`.
    if (answered || message.text === script.otherwise) answers += 1;
    if (answered && !answered.repeat) used.add(answered);
  }
  return fitting(script, conversation, conversation.messages, answers + 1, used)[0];
}

function fitting(
  script: ScriptFile,
  conversation: Conversation,
  messages: readonly Message[],
  answer: number,
  used: ReadonlySet<ScriptTurn>,
): ScriptTurn[] {
  const callsTools = script.turns.some(({ run, calls }) => run ?? calls);
  const offered = conversation.tools.length > 0;
  return script.turns.filter((turn) => {
    if (used.has(turn)) return false;
    // Harnesses request titles and summaries without tools; these must not use up the turns of an agent's
    // script.
    if (!offered && callsTools && turn.when.tools !== false) return false;
    if (!offered && (turn.run ?? turn.calls)) return false;
    return holds(turn.when, conversation, messages, answer);
  });
}

function holds(
  when: When,
  conversation: Conversation,
  messages: readonly Message[],
  answer: number,
): boolean {
  const { system, model, wire, tools } = conversation;
  const textsFrom = (from: Message['from'], among = messages) =>
    among.filter((message) => message.from === from).map(({ text }) => text);
  const spokeLast = messages.findLastIndex(({ from }) => from === 'model');
  return (
    found(when.user, textsFrom('user').slice(-1)) &&
    found(when.anyUser, textsFrom('user')) &&
    found(when.result, textsFrom('tool', messages.slice(spokeLast + 1))) &&
    found(when.anyResult, textsFrom('tool')) &&
    found(when.system, [system]) &&
    found(when.model, [model]) &&
    (when.wire === undefined || when.wire === wire) &&
    (when.turn === undefined || when.turn === answer) &&
    (when.last === undefined || when.last === messages.at(-1)?.from) &&
    (when.tools === undefined || when.tools === tools.length > 0)
  );
}

function found(match: TextMatch | undefined, texts: readonly string[]): boolean {
  if (match === undefined) return true;
  if (typeof match === 'object' && 'matches' in match) {
    const expression = new RegExp(match.matches, 'u');
    return texts.some((text) => expression.test(text));
  }
  const wanted = typeof match === 'string' ? match : match.contains;
  return texts.some((text) => text.includes(wanted));
}

/**
 * Whether a message of the model may come from this turn. Harnesses trim texts, and keep the beginning of a
 * text that was cut.
 *
 * @param endingCalls the calls of an answer that ends a turn of the harness
 */
export function saidBy(
  turn: Pick<ScriptTurn, 'text' | 'run' | 'calls'>,
  { text, calls }: { text: string; calls: number },
  endingCalls: number,
): boolean {
  const called = (turn.run?.length ?? 0) + (turn.calls?.length ?? 0) || endingCalls;
  if (called > 0 || calls > 0) return called === calls;
  const said = text.trim();
  return said !== '' && (turn.text ?? '').trim().startsWith(said);
}
