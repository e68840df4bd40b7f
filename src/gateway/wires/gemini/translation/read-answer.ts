import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart, stopOf, stopWith } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { anything, object, objectIfAny, objectsOf, wholeText } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { fields } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';
import { withSignature } from './signatures.ts';

const Answer = object({
  responseId: wholeText,
  modelVersion: wholeText,
  candidates: anything,
  promptFeedback: object({ blockReason: anything }),
  usageMetadata: anything,
  error: anything,
});
const Candidate = object({ content: object({ parts: anything }), finishReason: anything });
const Part = object({
  text: wholeText,
  thought: anything,
  thoughtSignature: wholeText,
  functionCall: objectIfAny({ id: anything, name: anything, args: anything }),
});

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const { responseId: id, modelVersion: model, ...answer } = Answer.parse(body);
  const { message: failure } = readError(answer.error);
  if (failure !== undefined) throw new UnreadableAnswer(failure);
  const [candidate, ...others] = objectsOf(answer.candidates);
  const about = { ...fields({ id, model }), usage: usageOf(answer.usageMetadata) };
  if (!candidate && answer.promptFeedback.blockReason !== undefined)
    return { ...about, parts: [], stop: 'refused' };
  if (!candidate || others.length > 0) throw new UnreadableAnswer('the answer is not one of gemini');
  const { content, finishReason } = Candidate.parse(candidate);
  const parts = objectsOf(content.parts).reduce<ModelPart[]>((read, each) => {
    const { functionCall, text, thought, thoughtSignature } = Part.parse(each);
    if (functionCall) {
      const { id, name, args } = functionCall;
      const call = callPart(ids, { id, name, arguments: JSON.stringify(args ?? {}) });
      return withSignature(read, call, thoughtSignature);
    }
    if (text === undefined) losses.record('answer.parts', 'answer detail');
    const type = thought === true ? 'reasoning' : 'text';
    return withSignature(read, { type, text: text ?? '' }, thoughtSignature);
  }, []);
  return {
    ...about,
    parts,
    stop: stopWith(stopOf(stops, finishReason, losses, 'answer.finishReason'), parts),
  };
};
