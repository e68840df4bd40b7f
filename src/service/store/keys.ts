import { randomBytes } from 'node:crypto';
import { sha256 } from '../../base/canonical-json.ts';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import type { Credential, Organization, Permission } from '../../contract/definition.ts';
import type { Records } from '../../ledger/records.ts';
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

const tables = 'keys JOIN organizations ON organizations.key = keys.organization';
const entries = `SELECT keys.id, organizations.slug AS organization, keys.name, keys.start, keys.permissions,
  keys.created_at AS createdAt, keys.revoked_at AS revokedAt FROM ${tables}`;

/**
 * API keys. Secrets are stored only as sha256: they are 32 random bytes, so a slow hash would add no
 * protection.
 */
export function createKeyStore(records: Records) {
  function organizationKey(name: string): number {
    const slug = slugOf(name);
    const found = records.get('SELECT key, name FROM organizations WHERE slug = ?', slug);
    if (found && found.name !== name && name !== slug) throw sameSlug(name, String(found.name), slug);
    if (found) return Number(found.key);
    return records.insert('organizations', {
      id: newIdentifier('org'),
      name,
      slug,
      createdAt: records.now(),
    });
  }

  /** Adds a key with a secret from the caller. An existing secret stays as it is, even if it is revoked. */
  function seed(secret: string, { organization, permissions, name }: KeyPurpose): KeyEntry {
    checkSecret(secret);
    const hash = sha256(secret);
    const stored = () => records.get(`${entries} WHERE keys.hash = ?`, hash);
    return records.transaction(() => {
      if (!stored()) {
        records.insert('keys', {
          id: newIdentifier('key'),
          organization: organizationKey(organization),
          hash,
          start: startOf(secret),
          name,
          permissions: JSON.stringify(permissions),
          createdAt: records.now(),
        });
      }
      return entryOf(stored());
    });
  }

  return {
    find(secret: string): Principal | undefined {
      const row = records.get(
        `SELECT organizations.key AS organizationKey, organizations.id, organizations.name, organizations.slug,
           keys.id AS keyId, keys.name AS keyName, keys.start, keys.permissions
         FROM ${tables} WHERE keys.hash = ? AND keys.revoked_at IS NULL`,
        sha256(secret),
      ) as Record<string, string> | undefined;
      if (!row) return undefined;
      const { keyId = '', organizationKey, id = '', name = '', slug = '', keyName, start, permissions } = row;
      return {
        keyId,
        organizationKey: Number(organizationKey),
        organization: { id, name, slug },
        credential: { kind: 'apiKey', name: keyName ?? null, start: start ?? null },
        permissions: new Set(JSON.parse(String(permissions))),
      };
    },
    seed,
    /** Creates a key. Its secret is available only here. */
    create(purpose: KeyPurpose): KeyEntry & { secret: string } {
      const secret = `ofs_${randomBytes(32).toString('base64url')}`;
      return { ...seed(secret, purpose), secret };
    },
    list: (): KeyEntry[] => records.all(`${entries} ORDER BY keys.created_at, keys.id`).map(entryOf),
    /** Revokes a key by its id; twice changes nothing. Throws an `input` error if there is none. */
    revoke(id: string): KeyEntry {
      const now = records.now();
      records.run('UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', now, id);
      const found = records.get(`${entries} WHERE keys.id = ?`, id);
      if (found) return entryOf(found);
      // Who gives the secret is not shown it again.
      const name = id.startsWith('ofs_') ? 'with the id that was given, which looks like a secret' : id;
      throw inputError('KEY_UNKNOWN', `there is no API key ${name}`, {
        hint: '`offsite service keys list` shows the ids, each with the beginning of its secret.',
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
  throw inputError('KEY_UNUSABLE', 'an API key must have 8 to 1024 visible ASCII characters and no spaces', {
    hint: 'It is sent in an HTTP header. Create one with `offsite service keys create`.',
  });
}

function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  if (slug) return slug;
  throw inputError(
    'ORGANIZATION_NAME',
    `an organization's name needs a letter or a digit: ${JSON.stringify(name)}`,
  );
}

/** Two names with one slug would share one organization, and its holders would see each other's data. */
function sameSlug(name: string, existing: string, slug: string): OffsiteError {
  return inputError(
    'ORGANIZATION_NAME',
    `the organization ${JSON.stringify(name)} would have the slug ${slug}, which is that of ` +
      `${JSON.stringify(existing)}`,
    {
      hint: `For a key of ${JSON.stringify(existing)}, give that name or its slug. Otherwise choose another name.`,
    },
  );
}

function entryOf(row: Record<string, unknown> | undefined): KeyEntry {
  if (!row) throw new Error('a key that was just written is not there');
  return { ...(row as unknown as KeyEntry), permissions: JSON.parse(String(row.permissions)) };
}
