import { freeFormParameters } from '../../../translation/free-form.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { NeutralTool } from '../../../translation/neutral-request.ts';
import { groupedName } from '../../../translation/tool-groups.ts';
import { words } from '../../accepted.ts';
import { isObject, type JsonObject, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';

const functionMembers = words('type name description parameters strict');
const customMembers = words('type name description');
const groupMembers = words('type name description tools');

/** The tools of a group become tools of their own. */
export function readTools(tools: readonly JsonObject[], losses: Losses, group?: string): NeutralTool[] {
  return tools.flatMap((tool) => {
    const name = stringIn(tool, 'name') ?? losses.refuse('tools[].name');
    if (tool.type === 'namespace' && group === undefined) {
      losses.rest(tool, 'tools[]', groupMembers, 'tool option');
      return readTools(objectsOf(tool.tools), losses, name);
    }
    if (tool.type !== 'function' && tool.type !== 'custom') return losses.refuse('tools[].type');
    const isCustom = tool.type === 'custom';
    losses.rest(tool, 'tools[]', isCustom ? customMembers : functionMembers, 'tool option');
    const description = stringIn(tool, 'description');
    return {
      name: group === undefined ? name : groupedName(group, name),
      ...(description !== undefined && { description }),
      parameters: isCustom ? freeFormParameters : isObject(tool.parameters) ? tool.parameters : {},
      ...(tool.strict === true && { strict: true as const }),
      ...(group !== undefined && { group: { name: group, tool: name } }),
      ...(isCustom && { freeForm: true as const }),
    };
  });
}
