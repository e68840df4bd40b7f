import { OffsiteError } from '../../base/offsite-error.ts';
import { type Asking, askRecorded } from './ask-model.ts';
import { fencedMaterial } from './material.ts';
import type { AnswerRequest } from './requests.ts';

/**
 * Returns a model's answer, as text, to a validator's question. Throws the same errors as {@link
 * askRecorded}.
 */
export async function answer(request: AnswerRequest, asking: Asking): Promise<string> {
  const { prompt, material, model, temperature, seed } = request;
  const fenced = Object.keys(material).length > 0 ? fencedMaterial(material) : undefined;
  const { text, stopped } = await askRecorded(
    {
      model,
      ...(fenced && { system: `${prompt}\n\n${fenced.instruction}` }),
      messages: [{ from: 'user', text: fenced ? fenced.text : prompt }],
      temperature,
      seed,
    },
    asking,
  );
  if (stopped !== 'refused') return text;
  throw new OffsiteError('the model refused to answer', { code: 'MODEL_REFUSED', kind: 'infrastructure' });
}
