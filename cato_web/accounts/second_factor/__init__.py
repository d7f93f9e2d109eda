"""The second factor of a sign-in: authenticator apps, passkeys, recovery codes, and confirming who acts."""
