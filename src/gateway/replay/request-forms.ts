import type { Wire } from '../../suite/model-config.ts';
import { Losses } from '../translation/losses.ts';
import type { NeutralRequest } from '../translation/neutral-request.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type CanonicalRequest, canonicalRequest } from './canonical-request.ts';
import type { RecordedTrial } from './cassette.ts';

/**
 * The forms in which a request may be recorded: as it is, and as it is after a translation to each wire to
 * which the trial's requests on the same wire were translated.
 */
export function requestForms(
  request: NeutralRequest,
  wire: Wire,
  trial: RecordedTrial | undefined,
): CanonicalRequest[] {
  const translated = (trial?.exchanges() ?? []).filter(({ from }) => from === wire);
  const others = new Set(translated.map((exchange) => exchange.wire));
  return [canonicalRequest(request), ...[...others].map((other) => carriedOver(request, other))];
}

function carriedOver(request: NeutralRequest, wire: Wire): CanonicalRequest {
  const { translation } = wireTable[wire];
  const losses = new Losses('lenient', request.model);
  const written = translation.writeRequest(request, losses, {
    model: request.model,
    maxOutputTokens: undefined,
  });
  return canonicalRequest(translation.readRequest(written, losses));
}
