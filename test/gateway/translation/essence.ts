import type { Loss } from '../../../src/gateway/translation/losses.ts';
import type {
  Content,
  ModelPart,
  NeutralMessage,
  NeutralRequest,
} from '../../../src/gateway/translation/neutral-request.ts';

type Asked = Omit<NeutralRequest, 'maxTokens'> & { maxTokens?: number | undefined };

/** One side's messages that follow each other. */
type Turn =
  | { side: 'user'; results: object[]; said: string[]; media: object[] }
  | { side: 'model'; said: string; thoughts: string; calls: object[] };

/**
 * What a request means, without what wires write in different ways: messages of one side that follow each
 * other are one, as are the texts of a message, and an image of a result is the user's. `lost`: what a translation has said that it lost is
 * not told.
 */
export function essenceOf(request: Asked, lost: readonly Loss[]) {
  const { messages, tools, usageAsked: _, reasoning, parallelCalls = true, ...settings } = request;
  const isLost = (path: string) => lost.some((loss) => loss.path === path);
  const joined = (turn: Turn) => (turn.side === 'user' ? { ...turn, said: turn.said.join('\n') } : turn);
  const first = messages.findIndex(({ from }) => from !== 'system');
  const system = messages.slice(0, first).map((message) => (message.from === 'system' ? message.text : ''));
  return {
    system: system.join('\n\n'),
    turns: messages
      .slice(first)
      .reduce<Turn[]>((turns, message) => {
        const last = turns.at(-1);
        const side = message.from === 'model' ? 'model' : 'user';
        const turn = last?.side === side ? last : emptyTurn(side);
        if (turn !== last) turns.push(turn);
        take(turn, message, isLost);
        return turns;
      }, [])
      .map(joined),
    tools: tools.map(({ group: _, freeForm: __, strict, ...tool }) => ({
      ...tool,
      parameters: { type: 'object', ...tool.parameters },
      strict: isLost('tools[].strict') ? undefined : strict,
    })),
    ...Object.fromEntries(Object.entries(settings).filter(([name]) => !isLost(name))),
    reasoning: isLost('reasoning.budget') ? undefined : reasoning,
    parallelCalls: isLost('parallelCalls') || parallelCalls,
  };
}

function emptyTurn(side: Turn['side']): Turn {
  if (side === 'user') return { side, results: [], said: [], media: [] };
  return { side, said: '', thoughts: '', calls: [] };
}

function take(turn: Turn, message: NeutralMessage, isLost: (path: string) => boolean): void {
  if (turn.side === 'user') {
    if (message.from === 'system') turn.said.push(message.text);
    if (message.from === 'user') turn.said.push(...textsOf(message.parts));
    if (message.from === 'user' || message.from === 'tool')
      turn.media.push(...message.parts.filter(({ type }) => type !== 'text'));
    if (message.from === 'tool') {
      const { callId, parts, failed } = message;
      const status = isLost('messages[].failed') ? {} : { failed };
      turn.results.push({ callId, text: textsOf(parts).join('\n'), ...status });
    }
  } else if (message.from === 'model') {
    const of = <Type extends ModelPart['type']>(type: Type) =>
      message.parts.filter((part): part is Extract<ModelPart, { type: Type }> => part.type === type);
    turn.said += of('text')
      .map(({ text }) => text)
      .join('');
    turn.calls.push(...of('call').map((call) => ({ ...call, arguments: JSON.parse(call.arguments) })));
    if (isLost('messages[].parts[].reasoning')) return;
    const thoughts = of('reasoning');
    if (isLost('messages[].parts[].signature')) turn.thoughts += thoughts.map(({ text }) => text).join('');
    else turn.thoughts += thoughts.map((thought) => JSON.stringify(thought)).join('\n');
  }
}

/** Without the text that names the result of an image. */
function textsOf(parts: readonly Content[]): string[] {
  return parts.flatMap((part) =>
    part.type === 'text' &&
    part.text.trim() !== '' &&
    !part.text.startsWith('From the result of the tool call')
      ? [part.text]
      : [],
  );
}
