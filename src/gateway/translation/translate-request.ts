import type { Wire } from '../../suite/model-config.ts';
import type { ExchangeTranslation } from '../gateway.ts';
import { estimateTokens } from '../scripted/answer.ts';
import type { ServedModel } from '../served-model.ts';
import type { JsonObject } from '../wires/lenient.ts';
import { wireTable } from '../wires/wire-table.ts';
import { Losses } from './losses.ts';
import type { NeutralRequest } from './neutral-request.ts';

/** A request in the wire of its model. */
export interface TranslatedRequest {
  /** The wires of the client and of the model. */
  from: Wire;
  to: Wire;
  /** Undefined for a count of tokens that the model's wire cannot ask for. */
  sent: { path: string; body: Buffer } | undefined;
  request: NeutralRequest;
  losses: Losses;
  /** Its tokens, from the size of the translated request. */
  estimate: number;
  /** Whether the client got the estimate. */
  estimated: boolean;
}

/**
 * Translates a request into the first wire of its model. Throws a GatewayRefusal (400) for what that wire
 * cannot carry and the model's configuration does not allow to leave out.
 */
export function translateRequest(
  body: JsonObject,
  from: Wire,
  { model, streamed, purpose }: { model: ServedModel; streamed: boolean; purpose: 'answer' | 'count' },
): TranslatedRequest {
  const [to] = model.wires;
  const { translation } = wireTable[to];
  const losses = new Losses(model.config.translation, model.name);
  const request: NeutralRequest = {
    ...wireTable[from].translation.readRequest(body, losses),
    model: model.name,
    streamed,
  };
  const target = { model: model.upstreamName, maxOutputTokens: model.config.maxOutputTokens };
  const written = translation.writeRequest(request, losses, target);
  const path =
    purpose === 'answer'
      ? translation.path(model.upstreamName, streamed)
      : translation.count?.path(model.upstreamName);
  const document = purpose === 'answer' ? written : translation.count?.write(written, model.upstreamName);
  const bytes = Buffer.from(JSON.stringify(document ?? written));
  const sent = path === undefined ? undefined : { path, body: bytes };
  return { from, to, sent, request, losses, estimate: estimateTokens(bytes.length), estimated: false };
}

/** What the record says about a translation. */
export function exchangeTranslationOf({ from, losses, estimated }: TranslatedRequest): ExchangeTranslation {
  return { from, losses: losses.all(), ...(estimated && { estimated }) };
}
