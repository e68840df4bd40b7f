import { startDeadline } from '../base/deadline.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { serviceDescription } from '../bounds/service.ts';
import type { OperationName } from '../contract/operations.ts';
import type { CallParts } from './call.ts';

/**
 * Whether a service has an operation that the specification does not have. `absent` is certain. `unclear`: it
 * failed to answer that. `unreachable`: nothing answers at its address.
 */
export type Offer = 'offered' | 'absent' | 'unclear' | 'unreachable';

/**
 * Looks an operation up in the OpenAPI document of a service. The specification does not name such a
 * document, so anything else that a service sends there is not a failure. Rejects only if a signal aborts.
 */
export async function askOffer(
  { address, transport, clock, closing }: Pick<CallParts, 'address' | 'transport' | 'clock' | 'closing'>,
  operation: OperationName,
  signal?: AbortSignal,
): Promise<Offer> {
  using limit = startDeadline(clock, serviceDescription.time.answer, [closing, signal]);
  const headers = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'offsite' };
  const get = () =>
    transport.exchange(
      { origin: address.origin, path: address.descriptionPath, method: 'GET', headers },
      { repeatable: true, signal: limit.signal, maximumBytes: serviceDescription.bytes.document },
    );
  let answer = await get();
  // The service may have just closed a kept connection.
  if (answer._tag === 'broken' && answer.sent) answer = await get();
  switch (answer._tag) {
    case 'stopped':
      if (!limit.expired()) throw limit.signal.reason;
      return 'unclear';
    case 'broken':
      return answer.sent ? 'unclear' : 'unreachable';
    case 'oversized':
      return 'absent';
    case 'answered':
      if (answer.status >= 500 || answer.status === 408 || answer.status === 429) return 'unclear';
      return answer.status === 200 && lists(answer.body, operation) ? 'offered' : 'absent';
  }
}

function lists(body: Buffer, operation: OperationName): boolean {
  try {
    const document = parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
    const { paths } = document as { paths?: Record<string, { post?: unknown }> };
    const post = paths?.[`/v1/${operation}`]?.post;
    return typeof post === 'object' && post !== null;
  } catch {
    // It is not JSON, too deep or too heavy to be read, or something else than a document.
    return false;
  }
}
