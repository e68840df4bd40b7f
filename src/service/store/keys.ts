import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { sha256 } from '../../base/canonical-json.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Credential, Organization, Permission } from '../../contract/definition.ts';
import { inTransaction } from '../../ledger/database.ts';
import { newIdentifier } from '../identifiers.ts';

/**
 * The caller of a request. `organizationKey` is the organization's row: every query of a request is limited
 * to it.
 */
export interface Principal {
  keyId: string;
  organizationKey: number;
  organization: Organization;
  credential: Credential;
  permissions: ReadonlySet<Permission>;
}

/** What a key is for. The organization's name, or its slug; a new one is created by its name. */
export interface KeyPurpose {
  organization: string;
  permissions: readonly Permission[];
  name?: string;
}

/**
 * A key as it may be shown. `start` is null if the secret is too short to show a part of it. Times are epoch
 * milliseconds.
 */
export interface KeyEntry {
  id: string;
  organization: string;
  name: string | null;
  start: string | null;
  permissions: Permission[];
  createdAt: number;
  revokedAt: number | null;
}

export type KeyStore = ReturnType<typeof createKeyStore>;

const columns = `keys.id, organizations.slug AS organization, keys.name, keys.start, keys.permissions,
  keys.created_at AS createdAt, keys.revoked_at AS revokedAt`;
const joined = 'keys JOIN organizations ON organizations.key = keys.organization';

/**
 * API keys. Secrets are stored only as sha256: they are 32 random bytes, so a slow hash would add no
 * protection.
 */
export function createKeyStore(database: DatabaseSync, now: () => number) {
  const active = database.prepare(
    `SELECT organizations.key AS organizationKey, organizations.id, organizations.name, organizations.slug,
       keys.id AS keyId, keys.name AS keyName, keys.start, keys.permissions
     FROM ${joined} WHERE keys.hash = ? AND keys.revoked_at IS NULL`,
  );
  const byHash = database.prepare(`SELECT ${columns} FROM ${joined} WHERE keys.hash = ?`);
  const byId = database.prepare(`SELECT ${columns} FROM ${joined} WHERE keys.id = ?`);
  const all = database.prepare(`SELECT ${columns} FROM ${joined} ORDER BY keys.created_at, keys.id`);
  const insert = database.prepare(
    `INSERT INTO keys (id, organization, hash, start, name, permissions, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const revoke = database.prepare('UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
  const organizationOf = database.prepare('SELECT key, name FROM organizations WHERE slug = ?');
  const insertOrganization = database.prepare(
    'INSERT INTO organizations (id, name, slug, created_at) VALUES (?, ?, ?, ?)',
  );

  function organizationKey(name: string): number {
    const slug = slugOf(name);
    const found = organizationOf.get(slug);
    if (found && found.name !== name && name !== slug) throw sameSlug(name, String(found.name), slug);
    if (found) return Number(found.key);
    return Number(insertOrganization.run(newIdentifier('org'), name, slug, now()).lastInsertRowid);
  }

  /** Adds a key with a secret from the caller. An existing secret stays as it is, even if it is revoked. */
  function seed(secret: string, purpose: KeyPurpose): KeyEntry {
    checkSecret(secret);
    return inTransaction(database, () => {
      const hash = sha256(secret);
      if (!byHash.get(hash)) {
        insert.run(
          newIdentifier('key'),
          organizationKey(purpose.organization),
          hash,
          startOf(secret),
          purpose.name ?? null,
          JSON.stringify(purpose.permissions),
          now(),
        );
      }
      return entryOf(byHash.get(hash));
    });
  }

  return {
    find(secret: string): Principal | undefined {
      const row = active.get(sha256(secret));
      if (!row) return undefined;
      return {
        keyId: String(row.keyId),
        organizationKey: Number(row.organizationKey),
        organization: { id: String(row.id), name: String(row.name), slug: String(row.slug) },
        credential: { kind: 'apiKey', name: textOrNull(row.keyName), start: textOrNull(row.start) },
        permissions: new Set(JSON.parse(String(row.permissions))),
      };
    },
    seed,
    /** Creates a key. Its secret is available only here. */
    create(purpose: KeyPurpose): KeyEntry & { secret: string } {
      const secret = `ofs_${randomBytes(32).toString('base64url')}`;
      return { ...seed(secret, purpose), secret };
    },
    list: (): KeyEntry[] => all.all().map(entryOf),
    /** Revokes a key by its id; twice changes nothing. Throws an `input` error if there is none. */
    revoke(id: string): KeyEntry {
      return inTransaction(database, () => {
        const found = byId.get(id);
        if (!found) {
          throw new OffsiteError(`there is no API key ${id}`, {
            code: 'KEY_UNKNOWN',
            kind: 'input',
            hint: 'See `offsite service keys list`.',
          });
        }
        revoke.run(now(), id);
        return entryOf(byId.get(id));
      });
    },
  };
}

/** Enough to recognize a key, and never a large part of it. */
function startOf(secret: string): string | null {
  return secret.length >= 32 ? secret.slice(0, 10) : null;
}

function checkSecret(secret: string): void {
  if (/^[\x21-\x7e]{8,1024}$/.test(secret)) return;
  throw new OffsiteError('an API key must have 8 to 1024 visible ASCII characters and no spaces', {
    code: 'KEY_UNUSABLE',
    kind: 'input',
    hint: 'It is sent in an HTTP header. Create one with `offsite service keys create`.',
  });
}

function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  if (slug) return slug;
  throw new OffsiteError(`an organization's name needs a letter or a digit: ${JSON.stringify(name)}`, {
    code: 'ORGANIZATION_NAME',
    kind: 'input',
  });
}

/** Two names with one slug would share one organization, and its holders would see each other's data. */
function sameSlug(name: string, existing: string, slug: string): OffsiteError {
  return new OffsiteError(
    `the organization ${JSON.stringify(name)} would have the slug ${slug}, which is that of ` +
      `${JSON.stringify(existing)}`,
    {
      code: 'ORGANIZATION_NAME',
      kind: 'input',
      hint: `For a key of ${JSON.stringify(existing)}, give that name or its slug. Otherwise choose another name.`,
    },
  );
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : String(value);
}

function entryOf(row: Record<string, unknown> | undefined): KeyEntry {
  if (!row) throw new Error('a key that was just written is not there');
  return { ...(row as unknown as KeyEntry), permissions: JSON.parse(String(row.permissions)) };
}
