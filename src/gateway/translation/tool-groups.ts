import { hash } from 'node:crypto';
import type { NeutralRequest, NeutralTool } from './neutral-request.ts';

/** Servers take tool names up to this length. */
const nameLength = 64;

/** One name for a tool of a group, for wires without groups. */
export function groupedName(group: string, tool: string): string {
  const name = `${group}__${tool}`;
  if (name.length <= nameLength) return name;
  const end = hash('sha256', name).slice(0, 12);
  return `${name.slice(0, nameLength - end.length - 1)}_${end}`;
}

export function toolNamed({ tools }: NeutralRequest, name: string): NeutralTool | undefined {
  return tools.find((tool) => tool.name === name);
}
