import type { Upstream, UpstreamRequest } from '../../../src/gateway/answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
export type Document = any;

/**
 * A provider that stores its requests and answers with one document after the other; it repeats the last one.
 */
export function provider(...answers: { status?: number; body: unknown }[]) {
  const requests: (Omit<UpstreamRequest, 'body'> & { body: Document })[] = [];
  const send: Upstream['send'] = async (request) => {
    requests.push({ ...request, body: JSON.parse(request.body.toString('utf8')) });
    const { status = 200, body } = answers[Math.min(requests.length, answers.length) - 1] ?? { body: '' };
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    // In two pieces, as networks deliver.
    const half = Math.floor(bytes.length / 2);
    return {
      status,
      headers: {},
      body: (async function* () {
        yield bytes.subarray(0, half);
        yield bytes.subarray(half);
      })(),
    };
  };
  return { send, requests };
}
