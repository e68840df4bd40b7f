import type { ModelPart } from '../../../translation/neutral-request.ts';
import type { JsonObject } from '../../lenient.ts';

/**
 * On this wire a signature is on the part that follows the thought. In the neutral form it belongs to a part
 * of reasoning, which has no text if the model did not show its thought.
 */
export function withSignature(
  read: ModelPart[],
  content: ModelPart,
  signature: string | undefined,
): ModelPart[] {
  const isThought = content.type === 'reasoning';
  if (isThought) read.push(signature ? { ...content, signature } : content);
  else {
    const last = read.at(-1);
    if (signature && last?.type === 'reasoning' && last.signature === undefined) last.signature = signature;
    else if (signature) read.push({ type: 'reasoning', text: '', signature });
    if (content.type !== 'text' || content.text !== '') read.push(content);
  }
  return read;
}

/** The parts of this wire. A signature goes to the next part that is no thought. */
export function signedParts(
  parts: readonly ModelPart[],
  write: (part: Exclude<ModelPart, { type: 'reasoning' }>) => JsonObject,
): JsonObject[] {
  const written: JsonObject[] = [];
  let signature: string | undefined;
  for (const [index, part] of parts.entries()) {
    if (part.type !== 'reasoning') {
      written.push({ ...write(part), ...(signature !== undefined && { thoughtSignature: signature }) });
      signature = undefined;
      continue;
    }
    const next = parts[index + 1];
    const follows = next !== undefined && next.type !== 'reasoning';
    if (part.text !== '')
      written.push({
        text: part.text,
        thought: true,
        ...(!follows && part.signature && { thoughtSignature: part.signature }),
      });
    else if (!follows && part.signature) written.push({ text: '', thoughtSignature: part.signature });
    signature = follows ? part.signature : undefined;
  }
  return written;
}
