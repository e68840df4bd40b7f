/** What requests of one wire may contain. Anything else is refused, because its effect is unknown. */
export interface Accepted {
  /** Members of the request. */
  members: ReadonlySet<string>;
  /** Members that make the provider work outside the conversation; they pass with `hostedTools: allow`. */
  hosted: ReadonlySet<string>;
  /** Types of the parts of a conversation. */
  parts: ReadonlySet<unknown>;
  /** Members of a tool. */
  toolMembers: ReadonlySet<string>;
}

/** The words of a text, as a set. */
export function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
