import { OffsiteError } from '../base/offsite-error.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import type { Span } from './trial-spans.ts';

/** Spans in one request: far below what receivers take. */
const together = 500;

/**
 * Yields the spans of trials as requests of OTLP in JSON, one after the other. The batch's own span comes
 * last.
 *
 * @param redact removes known secrets from a text
 * @throws the input error `OTLP_MISSING` if the packages of OpenTelemetry are not installed
 */
export async function* spanRequests(
  trials: Iterable<ExportedTrial>,
  redact: (text: string) => string,
): AsyncGenerator<Uint8Array> {
  const { trialSpans, batchSpan, JsonTraceSerializer } = await packages();
  const request = (spans: Span[]): Uint8Array => {
    const body = JsonTraceSerializer.serializeRequest(spans);
    if (!body) throw new Error('the serializer gave nothing');
    return Buffer.from(redact(Buffer.from(body).toString('utf8')));
  };
  let waiting: Span[] = [];
  let last: { batch: ExportedTrial['batch']; finishedAt: number } | undefined;
  for (const trial of trials) {
    waiting.push(...trialSpans(trial));
    const finishedAt = Math.max(last?.finishedAt ?? 0, trial.record.finishedAt);
    last = { batch: trial.batch, finishedAt };
    for (; waiting.length >= together; waiting = waiting.slice(together))
      yield request(waiting.slice(0, together));
  }
  if (last) yield request([...waiting, batchSpan(last.batch, last.finishedAt)]);
}

async function packages() {
  try {
    const [spans, { JsonTraceSerializer }] = await Promise.all([
      import('./trial-spans.ts'),
      import('@opentelemetry/otlp-transformer'),
    ]);
    return { ...spans, JsonTraceSerializer };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new OffsiteError('exporting spans needs packages of OpenTelemetry, which are not installed', {
      code: 'OTLP_MISSING',
      kind: 'input',
      hint:
        'Install them beside Offsite: npm install @opentelemetry/api @opentelemetry/otlp-transformer ' +
        '@opentelemetry/resources',
      cause: error,
    });
  }
}
