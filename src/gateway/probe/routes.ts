import type { Wire } from '../../suite/model-config.ts';
import { isObject } from '../wires/lenient.ts';
import { allWires, usualWire } from '../wires/wire-table.ts';
import type { AskServer, ServerAnswer } from './ask-server.ts';

/** `unknown`: the server answers each route in the same way, as one that wants a key first does. */
export type HasRoute = 'yes' | 'no' | 'unknown';

/** A route that names a model cannot be asked for without one. */
const wiresToAsk = allWires.filter(({ targetOf }) => !targetOf);

/** No server has this route, so the answer shows how a server answers for routes that it does not have. */
const noRoute = '/offsite-asks-for-no-route';

/**
 * Which wires have a route at a base URL. The request is no valid one of any wire, so no model runs: a server
 * that has the route complains about the request.
 */
export async function routesOf(ask: AskServer): Promise<Map<Wire, HasRoute>> {
  const answerOf = (path: string, wire: Wire) =>
    ask({ path, wire, body: { max_tokens: 1 } }).catch(() => undefined);
  const none = await answerOf(noRoute, usualWire.name);
  const found = wiresToAsk.map(
    async ({ name, endpoints: [{ path }] }) =>
      [name, hasRoute(await answerOf(path, name), none, path)] as const,
  );
  return new Map(await Promise.all(found));
}

function hasRoute(answer: ServerAnswer | undefined, none: ServerAnswer | undefined, path: string): HasRoute {
  if (!answer) return 'unknown';
  const { status } = answer;
  const refusesAll = status === none?.status && withoutPath(answer, path) === withoutPath(none, noRoute);
  if (status === 401 || status === 403) return none && none.status !== status ? 'yes' : 'unknown';
  if (refusesAll || [404, 405, 501].includes(status) || (status >= 300 && status < 400)) return 'no';
  // A web page is no API.
  return isObject(answer.document) ? 'yes' : 'no';
}

/** LM Studio answers 200 and repeats the path. */
function withoutPath({ text }: ServerAnswer, path: string): string {
  return text.replaceAll(path, '');
}
