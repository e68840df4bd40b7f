import type { ModelPart } from '../../../translation/neutral-request.ts';
import { type JsonObject, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import type { RepeatedText } from '../../wire-event.ts';

type Reasoning = Extract<ModelPart, { type: 'reasoning' }>;

interface WrittenReasoning {
  text: string | RepeatedText;
  signature?: string | undefined;
  redacted?: boolean | undefined;
}

/**
 * Marks encrypted content that the model's wire calls redacted, and not a signature of the text beside it.
 */
const redactedMark = 'redacted:';

export function reasoningOf(item: JsonObject): Reasoning {
  const texts = [...objectsOf(item.summary), ...objectsOf(item.content)].flatMap(
    (part) => stringIn(part, 'text') ?? [],
  );
  const signature = stringIn(item, 'encrypted_content') || undefined;
  if (signature?.startsWith(redactedMark))
    return { type: 'reasoning', text: '', signature: signature.slice(redactedMark.length), redacted: true };
  return { type: 'reasoning', text: texts.join('\n\n'), ...(signature && { signature }) };
}

export function reasoningItem({ text, signature, redacted }: WrittenReasoning): JsonObject {
  return {
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(signature !== undefined && {
      encrypted_content: redacted ? `${redactedMark}${signature}` : signature,
    }),
  };
}
