import { isUtf8 } from 'node:buffer';
import { messageOf } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import type { ModelExchange } from '../../record/model-account.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { Losses } from '../translation/losses.ts';
import { isObject } from '../wires/lenient.ts';
import { wireTable } from '../wires/wire-table.ts';
import { canonicalRequest } from './canonical-request.ts';
import type { RecordedExchange } from './cassette.ts';

/**
 * An exchange of a record, or why it cannot be replayed.
 *
 * @param read the content of a blob; undefined if there is none
 */
export function recordedExchange(
  exchange: ModelExchange,
  number: number,
  read: (sha256: string) => Buffer | undefined,
): RecordedExchange | string {
  const { role, model, status = 0, requestBody, responseBody, translation } = exchange;
  const wire = wireNamed(exchange.wire);
  if (!wire) return `its wire ${exchange.wire} is not supported`;
  const isRefusal = [400, 413, 422].includes(status);
  if (exchange.failure !== undefined && !isRefusal) return exchange.failure;
  if (requestBody === undefined || responseBody === undefined) return 'its bodies were not kept';
  const sent = read(requestBody);
  const got = read(responseBody);
  if (!sent || !got) return 'its bodies are no longer in the ledger';
  if (!isUtf8(got) || /\n\[cut: \d+ of \d+ bytes\]$/.test(got.subarray(-80).toString('latin1')))
    return 'its answer was not kept as a whole';
  let request: RecordedExchange['request'];
  try {
    const body = parseForeignJson(sent.toString('utf8'));
    if (!isObject(body)) return 'its request is not a JSON object';
    request = canonicalRequest(wireTable[wire].translation.readRequest(body, new Losses('lenient', model)));
  } catch (error) {
    return messageOf(error);
  }
  const from = translation && wireNamed(translation.from);
  const answer = () => ({ wire, status, body: got });
  return { number, role, model, wire, from, request, answer };
}

function wireNamed(name: string): Wire | undefined {
  return wires.find((wire) => wire === name);
}

/** Counts of tokens are estimated in a replay. */
export function isCount({ wire, path }: ModelExchange): boolean {
  const known = wireNamed(wire);
  if (!known) return false;
  const { targetOf, endpoints } = wireTable[known];
  if (targetOf) return targetOf(path.split('?', 1)[0] ?? '')?.purpose === 'count';
  return endpoints.some((endpoint) => endpoint.writeCount && path.split('?', 1)[0] === endpoint.path);
}
