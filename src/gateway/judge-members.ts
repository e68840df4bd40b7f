import type { Wire } from '../suite/model-config.ts';
import { GatewayRefusal } from './refusal.ts';
import type { ServedModel } from './served-model.ts';
import { isNothing, type JsonObject } from './wires/lenient.ts';
import { providerSide } from './wires/provider-side.ts';
import { hostedMembers, knownMembers, wireTable } from './wires/wire-table.ts';

/**
 * Throws a {@link GatewayRefusal} for a request with a member that this gateway does not know, because such a
 * member may select another model or open a way out of the sandbox. Also refuses a request that makes the
 * provider work outside the conversation, unless the model's configuration allows it.
 */
export function judgeMembers(
  body: JsonObject,
  wire: Wire,
  { name, config }: Pick<ServedModel, 'name' | 'config'>,
): void {
  const { accepted, hostedTool, names, providerSide: ownJudge } = wireTable[wire].requests;
  const isKnown = (member: string) =>
    names
      ? accepted.members.has(member) || accepted.hosted.has(member)
      : knownMembers.has(member) || hostedMembers.has(member);
  const unknown = Object.keys(body).find(
    (member) => !isKnown(member) && !config.requestMembers.includes(member) && !isNothing(body[member]),
  );
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 100));
    throw new GatewayRefusal(
      400,
      'MEMBER_UNKNOWN',
      `${shown} is not a request member that Offsite knows. If the model's server accepts it, ` +
        `add it to \`requestMembers\` of the model ${name} in offsite.yaml`,
    );
  }
  if (config.hostedTools === 'allow') return;
  const hosted = ownJudge ? ownJudge(body) : providerSide(body, accepted, hostedTool);
  if (hosted === undefined) return;
  throw new GatewayRefusal(
    400,
    'HOSTED_TOOL_DENIED',
    `${hosted} would run at the model's provider, outside the sandbox. ` +
      `To allow it, set \`hostedTools: allow\` for the model ${name} in offsite.yaml`,
  );
}
