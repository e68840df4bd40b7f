import { allWires } from './wire-table.ts';

const accepted = allWires.map(({ requests }) => requests.accepted);

/** Members of any wire: servers that speak several ignore those of the others, or read them alike. */
export const knownMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ members }) => [...members]));

/** Members that make a provider work outside the conversation, of any wire. */
export const hostedMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ hosted }) => [...hosted]));
