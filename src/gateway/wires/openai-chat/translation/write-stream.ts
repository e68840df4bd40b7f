import { freeFormInput, isFreeFormTool } from '../../../translation/free-form.ts';
import type { NeutralEvent } from '../../../translation/neutral-answer.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { finishReasons, head, usageOf } from './write-answer.ts';

export const writeStream: WireTranslation['writeStream'] = ({ request, at, losses }, emit) => {
  let begun: JsonObject = {};
  let index = -1;
  /** The text of an open call whose client wants it without JSON around it. */
  let input: WholeText | undefined;
  const nothing = request.usageAsked ? { usage: null } : {};
  const send = (choices: JsonObject[], more: JsonObject = nothing) =>
    emit({ event: undefined, data: { ...begun, choices, ...more } });
  const delta = (delta: JsonObject, finish_reason: string | null = null) =>
    send([{ index: 0, delta, logprobs: null, finish_reason }]);
  const call = (call: JsonObject) => delta({ tool_calls: [{ index, ...call }] });

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        begun = head(step, 'chat.completion.chunk', request.model, at);
        return delta({ role: 'assistant', content: '' });
      case 'text':
        return delta({ content: step.text });
      case 'refusal':
        return delta({ refusal: step.text });
      case 'reasoning':
        return delta({ reasoning_content: step.text });
      case 'signature':
        return losses.tell('answer.signature', 'reasoning');
      case 'call': {
        const { id, name } = step;
        index += 1;
        if (isFreeFormTool(request, name)) {
          input = new WholeText();
          return call({ id, type: 'custom', custom: { name, input: '' } });
        }
        return call({ id, type: 'function', function: { name, arguments: '' } });
      }
      case 'arguments':
        if (input) return input.add(step.text);
        return call({ function: { arguments: step.text } });
      case 'callEnd':
        if (input) call({ custom: { input: freeFormInput(input.take()) } });
        input = undefined;
        return;
      case 'end':
        delta({}, finishReasons[step.stop]);
        if (request.usageAsked && Object.keys(step.usage).length > 0)
          send([], { usage: usageOf(step.usage) });
        return emit({ event: undefined, data: '[DONE]' });
      case 'failure': {
        const type = step.overloaded ? 'server_error' : 'api_error';
        return emit({
          event: undefined,
          data: { error: { message: step.message, type, param: null, code: step.code ?? null } },
        });
      }
    }
  };
  return { take, held: () => input?.held ?? 0 };
};
